// config.cc: the options of passes, one row each.
#include <algorithm>
#include <array>

#include "collage/transform/pass_context.h"

namespace collage {

std::span<const ConfigKey> AllConfigKeys() {
  static const std::array keys{
      ConfigKey{"relay.AnnotateTarget.include_non_call_ops", AttrKind::kBool, true,
                "whether tuples and projections between a toolchain's operators are its own, too"},
      ConfigKey{"relay.AnnotateTarget.targets", AttrKind::kString, "",
                "toolchains that AnnotateTarget offers operators to, most wanted first, by comma"},
      ConfigKey{"relay.CombineParallelBatchMatmul.min_num_branches", AttrKind::kInt, 3,
                "fewest batch products of one value that CombineParallelBatchMatmul joins"},
      ConfigKey{"relay.CombineParallelConv2D.min_num_branches", AttrKind::kInt, 3,
                "fewest convolutions of one value that CombineParallelConv2D joins"},
      ConfigKey{"relay.CombineParallelDense.min_num_branches", AttrKind::kInt, 3,
                "fewest dense layers of one value that CombineParallelDense joins"},
      ConfigKey{"relay.CombineParallelDense.to_batch", AttrKind::kBool, true,
                "join dense layers of equal shape to nn.batch_matmul; false: to one wider nn.dense"},
      ConfigKey{"relay.ConvertLayout.desired_layouts", AttrKind::kString, "",
                "operator=layout by comma, such as nn.conv2d=NHWC or nn.conv2d=NHWC:HWIO"},
      ConfigKey{"relay.FuseOps.max_depth", AttrKind::kInt, 256, "most operators that FuseOps puts in one function"},
      ConfigKey{"relay.Legalize.operators", AttrKind::kString, "",
                "operators that Legalize may rewrite, by comma; empty: all that it knows"},
      ConfigKey{"relay.MergeComposite.toolchain", AttrKind::kString, "",
                "the toolchain whose pattern table MergeComposite uses"},
      ConfigKey{"relay.PartitionGraph.bind_constants", AttrKind::kBool, true,
                "whether constants go into partitions; false: they become parameters"},
      ConfigKey{"relay.PlanDevices.insert_copies", AttrKind::kBool, true,
                "whether device_copy moves what is needed elsewhere; false, as in compilations: partitioning places "
                "copies, and those of the model only say where values are"},
      ConfigKey{"relay.ToMixedPrecision.dtype", AttrKind::kString, "float16",
                "what ToMixedPrecision computes in: float16 or bfloat16"},
      ConfigKey{"relay.ToMixedPrecision.keep_orig_output_dtype", AttrKind::kBool, false,
                "whether the function's result keeps its dtype"},
      ConfigKey{"relay.collage.budget", AttrKind::kString, "",
                "time that CollagePartition may spend on measuring, such as 60s; empty: no limit"},
      ConfigKey{"relay.collage.database", AttrKind::kString, "",
                "tuning database of CollagePartition; empty: that of `collage compile`"},
      ConfigKey{"relay.collage.enable_collage", AttrKind::kBool, false,
                "whether relay.vm.compile of the Python package looks for the best mix of the targets it is given"},
      ConfigKey{"relay.collage.estimator", AttrKind::kString, "measure",
                "where CollagePartition has costs from: measure, database, analytic or mock=FILE.json"},
      ConfigKey{"relay.collage.num_threads", AttrKind::kInt, 0,
                "threads for which CollagePartition measures; 0: all processors that this process may use"},
      ConfigKey{"relay.collage.targets", AttrKind::kString, "",
                "targets that CollagePartition covers the module with, such as 'llvm; llvm -compiler=NAME'; empty: "
                "the default toolchains"},
      ConfigKey{"relay.fallback_device_type", AttrKind::kInt, 1,
                "where PlanDevices puts what nothing constrains: a DLDeviceType, 1 is the processor, 2 a CUDA device; "
                "0 leaves it open, as compilations do where it is not set"},
  };
  return keys;
}

}  // namespace collage
