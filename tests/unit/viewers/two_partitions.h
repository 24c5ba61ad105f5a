// two_partitions.h: an executable of two partitions, in a file, and the model that it might be of.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "support/file.h"
#include "unit/runtime/test_plan.h"
#include "viewers/onnx_outline.h"
#include "viewers/viewed_model.h"

namespace collage {

/// Two partitions: of nodes a and b, of which only a has products, and of nodes b and c, which have none.
inline ExecutionPlan TwoPartitions() {
  PlanWriter writer;
  const int middle = writer.AddArenaValue({8});
  writer.Add(writer.AddInput("x", {8}), middle, 1);
  writer.Add(middle, writer.AddOutput("y", {8}), 1);
  std::vector<ExecutionPlan::KernelEntry>& kernels = writer.plan.kernels;
  kernels[0].nodes = {"a", "b"};
  kernels[0].work = ExecutionPlan::KernelWork{100, 100, 0, 0, {100, 0}};
  kernels[0].estimated_seconds = 4e-6;
  kernels[1].nodes = {"b", "c"};
  kernels[1].work = ExecutionPlan::KernelWork{};
  kernels[1].toolchain = "other";
  kernels[1].label = "exp+add";
  kernels[1].estimated_seconds = 1e-6;
  return writer.plan;
}

class ViewersTest : public testing::Test {
 protected:
  ViewersTest() : file_(folder_ / "two.clg") {
    Executable::FromPlan(TwoPartitions()).Save(file_);
    viewed_.emplace(file_);
  }
  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::optional<ViewedModel> viewed_;
  const OnnxOutline outline_{"main_graph",
                             {{"a", "Conv", {"x", "w"}, {"a_out"}},
                              {"b", "Relu", {"a_out"}, {"b_out"}},
                              {"c", "Exp", {"b_out"}, {"y"}},
                              {"d", "Constant", {}, {"w"}}},
                             {"x"},
                             {"y"}};
};

}  // namespace collage
