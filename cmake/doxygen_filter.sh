#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What Doxygen reads in place of a file: doxygen_filter.sh FILE
#
# A header's first docstring describes the file; explicit instantiations declare nothing new. An example is a page of its
# first docstring and its source. Links of pages lead to those pages, not to their sections, which Doxygen does not know;
# what has no page in the reference, such as a folder, a script or a section of the same page, is named without a link.
case $1 in
  *.hpp) sed -e 's|^#pragma once$|/// @file|' -e '/^extern template.*;$/s/.*//' -e '/^extern template/,/;$/s/.*//' "$1" ;;
  *.cpp) awk 'NR == 1 { sub(".*/", "", FILENAME); print "/// @example " FILENAME; next } !/^\/\/\// { exit } { print }' "$1" ;;
  *)
    sed -E -e 's#\]\((\.\./)*examples/([0-9][0-9a-z_]*\.cpp)\)#](@ref \2)#g' \
      -e 's@(\]\([^):#]+\.md)#[^)]*\)@\1)@g' \
      -e 's#\[([^]]*)\]\((\#[^)]*|(\.\./)*[a-z_/]*|[^):@]*\.(cff|cpp|hpp|cu|py|sh|c|h))\)#\1#g' "$1"
    ;;
esac
