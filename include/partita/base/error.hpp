#pragma once
/// Every error of the library is one of these types; its message names the operands and their shapes, or the
/// file.

#include <stdexcept>
#include <string>

namespace partita {

/// Base of all exceptions thrown by partita.
struct error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Shapes, blockings or meshes of operands that do not fit together.
struct shape_error : error {
  using error::error;
};

/// A mesh that does not fill its ranks, a replication that does not divide them, a policy nobody knows.
struct mesh_error : error {
  using error::error;
};

/// Ranks disagree about a collective operation, or the transport failed.
struct communication_error : error {
  using error::error;
};

/// A rank left because another rank failed; the message is that of the rank that failed first.
struct poisoned_error : communication_error {
  using communication_error::communication_error;
};

/// A call of a device's runtime failed, or a device that was asked for is not there; the message names the
/// call.
struct device_error : error {
  using error::error;
};

/// A file or a value in it that cannot be used; the message names the file.
struct input_error : error {
  using error::error;
};

}  // namespace partita
