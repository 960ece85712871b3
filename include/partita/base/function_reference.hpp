// SPDX-License-Identifier: Apache-2.0
#pragma once
/// References to callables, so that the code that calls them is compiled once.

#include <type_traits>

namespace partita::base {

/// Non-owning reference to a callable, so that the code that runs it is compiled once, not per callable type.
template <class... Arguments>
class function_reference {
 public:
  template <class F>
  requires(!std::is_same_v<F, function_reference>) function_reference(const F& f)
      : function_(&f), call_([](const void* function, Arguments... arguments) {
          (*static_cast<const F*>(function))(arguments...);
        }) {}

  void operator()(Arguments... arguments) const { call_(function_, arguments...); }

 private:
  const void* function_;
  void (*call_)(const void*, Arguments...);
};

}  // namespace partita::base
