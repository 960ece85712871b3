// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is claimed of pipelines of layers, against the simulator and the closed forms.

namespace bench {

/// Prints tables: bubbles, published volumes and speed-ups, predictions of published times, and what would be
/// faster. Arithmetic only.
void print_pipeline_claims();

}  // namespace bench
