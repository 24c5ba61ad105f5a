// dot.h: an executable as a drawing in Graphviz's language (RFC 0.81, Appendix G).
#pragma once

#include <string>

#include "viewers/viewed_model.h"

namespace collage {

/// Draws partitions with toolchain, operators, seconds and share of all seconds, copies, changes of layout, and the
/// tensors between them; each plan of a program in a frame, kernels for dynamic shapes as boxes. Partitions of one
/// toolchain have one colour. Times that nobody knows are not drawn.
std::string DotOf(const ViewedModel& model);

}  // namespace collage
