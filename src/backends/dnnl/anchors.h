// anchors.h: the operator of a match that becomes the primitive itself.
#pragma once

#include "backends/dnnl/reading.h"

namespace collage::dnnl_toolchain {

/// Finds the anchor among `reading.calls()` and fills in `primitive` but for its post-ops and what its result is
/// quantised to. Returns which call's value the primitive computes. Throws a Refusal.
size_t ReadAnchor(Reading& reading, Primitive& primitive);

/// `op` as a binary algorithm; kNone when oneDNN has none.
Binary BinaryOf(const std::string& op);

// Families, each in a file of its own; `call` is the anchor.

void ReadConvolution(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadProduct(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadPool(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadNormalisation(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadResampling(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadReduction(Reading& reading, const CallNode& call, Primitive& primitive);
void ReadConcat(Reading& reading, const CallNode& call, Primitive& primitive);

/// The shape under which the vector of nn.bias_add or nn.prelu is spread over data of `rank` dimensions.
Shape AlongAxis(const CallNode& call, size_t rank);
/// Refuses data whose channels are not on axis 1; `attribute` names the order of dimensions.
void RequireChannelsFirst(const CallNode& call, const char* attribute);

}  // namespace collage::dnnl_toolchain
