// SPDX-License-Identifier: Apache-2.0
#pragma once
/// References to callables, so that the code that calls them is compiled once.

#include <type_traits>

namespace partita::base {

template <class Signature>
class function_reference;

/// Non-owning reference to a callable, so that the code that runs it is compiled once, not per callable type.
template <class Result, class... Arguments>
class function_reference<Result(Arguments...)> {
 public:
  template <class F>
  requires(!std::is_same_v<F, function_reference>) function_reference(const F& f)
      : function_(&f), call_([](const void* function, Arguments... arguments) -> Result {
          return static_cast<Result>((*static_cast<const F*>(function))(arguments...));
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, arguments...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace partita::base
