# SPDX-License-Identifier: Apache-2.0
# What is installed is all that a user needs, and nothing else: cmake -DPARTITA=FOLDER -DPREFIX=FOLDER -P package.cmake
# The same of a Debian package, made in the folder DEB: cmake ... -DPREFIX=DEB/usr -DDEB=FOLDER -DBUILD=FOLDER -P package.cmake
if(DEB)
  file(REMOVE_RECURSE ${DEB})
  cmake_path(GET CMAKE_COMMAND PARENT_PATH tools)
  execute_process(COMMAND ${tools}/cpack -G DEB --config ${BUILD}/CPackConfig.cmake -B ${DEB}/made
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB package ${DEB}/made/*_all.deb)
  execute_process(COMMAND dpkg-deb --extract ${package} ${DEB} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND dpkg-deb --field ${package} Architecture
                  OUTPUT_VARIABLE architecture COMMAND_ERROR_IS_FATAL ANY)
  if(NOT architecture STREQUAL "all\n")
    message(SEND_ERROR "${package} is for ${architecture}")
  endif()
endif()

file(GLOB_RECURSE installed RELATIVE ${PREFIX} ${PREFIX}/*)
file(GLOB_RECURSE expected RELATIVE ${PARTITA} ${PARTITA}/include/*)
foreach(file partitaConfig partitaConfigVersion partitaTargets partita_backends partita_compiled FindCBLAS FindLAPACKE FindLibZip FindDLPack FindMETIS FindNCCL)
  list(APPEND expected share/cmake/partita/${file}.cmake)
endforeach()
file(GLOB sources RELATIVE ${PARTITA}/cmake ${PARTITA}/cmake/compiled/*)
list(TRANSFORM sources PREPEND share/cmake/partita/)
list(APPEND expected ${sources} share/pkgconfig/partita.pc share/doc/partita/LICENSE)
set(missing ${expected})
list(REMOVE_ITEM missing ${installed})
list(REMOVE_ITEM installed ${expected})
if(missing OR installed)
  message(SEND_ERROR "${PREFIX} is without ${missing} and has ${installed}")
endif()
