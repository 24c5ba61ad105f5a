// padded_data.h: images as loops read them: channels innermost, and what is around them, too.
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Whether the pixels of channels-last data follow each other without gaps.
bool IsDense(const Buffer& data);

/// As elements of `dtype` with the channels innermost, whatever the order in which the data lies.
Buffer ChannelsLastData(PartitionState& state, const Expr& data, DataType dtype);

/// The data as elements of `dtype`, with `before` and `after` rows around each spatial dimension: of what `fill` gives,
/// of zeros without. Channels-last unless `layout` says otherwise, which may be plain for data that lie so.
Buffer PaddedData(PartitionState& state, const Expr& data, const std::vector<int64_t>& before,
                  const std::vector<int64_t>& after, DataType dtype, const std::function<Value()>& fill = {},
                  Layout layout = Layout::kChannelsLast);

}  // namespace collage::native
