// Kernels of tensor cores with mistakes, which the driver without a GPU finds.
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/kernel.h"
#include "conformance/gpu/tensor_cores_cases.h"
#include "conformance/on_device.h"

namespace collage {
namespace {

/// Kernels whose loops were written right, and then changed.
class TensorCoresDeathTest : public TensorCoresTest {
 protected:
  using Change = std::function<void(std::string& loops)>;
  static constexpr const char* kTwoBlocks = "rows=32,width=2,parts=1,warps=4,stages=3";
  /// Both tiles by one block.
  static constexpr const char* kOneBlock = "rows=32,width=2,parts=1,parallel=no,warps=4,stages=3";
  static constexpr const char* kGroups = "algorithm=warpgroups,rows=64,width=2,parts=1,warps=4,stages=3";
  static constexpr const char* kBarrier = "func.call @collage_synchronise_block() : () -> ()";

  void SetUp() override {
    TensorCoresTest::SetUp();
    if (std::getenv("COLLAGE_TEST_GPU") != nullptr) GTEST_SKIP() << "of the driver without a GPU";
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    setenv("STANDIN_CUDA_RACES", "1", 1);
  }
  void TearDown() override { unsetenv("STANDIN_CUDA_RACES"); }

  /// Whether a product agrees with the reference, computed by loops that `change` has changed: two tiles by blocks of
  /// warps.
  static bool Agrees(const Change& change, const std::string& schedule) {
    constexpr int64_t kRows = 40, kDepth = 80;
    const std::unique_ptr<const Toolchain> toolchain = In("tf32", "emulated");
    const Function function = FunctionOf("def @main(" + Tensor2("x", kRows, kDepth) + ", " +
                                         Tensor2("w", kRows, kDepth) + ") { nn.dense(%x, %w) }");
    InferType(function);
    PartitionRequest request{function, collage::In(Memory::kCuda, PlainLayouts(1, 1)), 1};
    request.schedule = schedule;
    Result<LoweredPartition> lowered = toolchain->RelayToTIR(request);
    COLLAGE_CHECK(lowered.ok()) << lowered.reason().text;
    change(lowered->mlir);
    const Result<CompiledPartition> compiled = toolchain->TIRToRuntime(*lowered);
    COLLAGE_CHECK(compiled.ok()) << compiled.reason().text;
    const std::unique_ptr<Kernel> kernel =
        GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    const std::vector<Tensor> data{conformance::RandomTensor({kRows, kDepth}, kFloat32, -1, 1, /*seed=*/3)};
    const Tensor expected = Evaluate(function, data).at(0);
    const Tensor result = Tensor::Zeros(expected.shape(), kFloat32);
    const Tensor memory = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes) + 1}, kUInt8);
    conformance::OnDevice device(Memory::kCuda);
    void* workspace = device.Place(memory.raw(), memory.size_bytes());
    const std::vector<void*> inputs{device.Place(data[0].raw(), data[0].size_bytes())};
    const std::vector<void*> outputs{device.Place(result.raw(), result.size_bytes())};
    kernel->Bind(inputs, outputs, workspace);
    kernel->Run();
    device.Fetch(result.raw(), outputs[0], result.size_bytes());
    return Compare(result, expected, ToleranceFor(expected, kBFloat16)).agrees;
  }

  /// Ends the process: with 0 where the product is right, with 1 where it is wrong, with 2 where the device complains.
  [[noreturn]] static void Multiply(const Change& change, const std::string& schedule = kTwoBlocks) {
    try {
      std::_Exit(Agrees(change, schedule) ? 0 : 1);
    } catch (const Error&) {
      std::_Exit(2);
    }
  }

  /// The place of `text` in `loops`, behind `from`. Ends the process where there is none.
  static size_t PlaceOf(const std::string& text, const std::string& loops, size_t from = 0) {
    const size_t place = loops.find(text, from);
    if (place == std::string::npos) std::_Exit(3);
    return place;
  }

  /// Erases the barrier number `number` of a tile: before its first copies, before each step, before its sums are
  /// written, before they are read.
  static Change WithoutBarrier(int number) {
    return [number](std::string& loops) {
      size_t place = PlaceOf(kBarrier, loops);
      for (int i = 0; i < number; ++i) place = PlaceOf(kBarrier, loops, place + 1);
      loops.erase(place, std::string(kBarrier).size());
    };
  }
};

testing::ExitedWithCode Is(int code) { return testing::ExitedWithCode(code); }
TEST_F(TensorCoresDeathTest, LoopsAsTheyAreAreRight) {
  for (const char* schedule : {kTwoBlocks, kOneBlock, kGroups}) {
    EXPECT_EXIT(Multiply([](std::string&) {}, schedule), Is(0), "");
    setenv("STANDIN_CUDA_REVERSED", "1", 1);
    EXPECT_EXIT(Multiply([](std::string&) {}, schedule), Is(0), "");
    unsetenv("STANDIN_CUDA_REVERSED");
  }
}

TEST_F(TensorCoresDeathTest, CopiesOverSumsThatMayStillBeReadAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(0), kOneBlock), Is(2), "writes a byte that thread .* in no order");
}

TEST_F(TensorCoresDeathTest, AMissingBarrierBeforeAStepIsFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(1)), Is(2), "a byte that thread .*, in no order");
}

TEST_F(TensorCoresDeathTest, SumsOverWordsThatMayStillBeReadAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(2)), Is(2), "writes a byte that thread .* in no order");
}

TEST_F(TensorCoresDeathTest, SumsThatAreReadBeforeTheyAreThereAreFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(3)), Is(2), "reads a byte that thread .* writes, in no order");
}

TEST_F(TensorCoresDeathTest, AWaitForTooFewCopiesIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string call = "func.call @collage_await_copies(";
                const size_t begin = PlaceOf(call, loops) + call.size();
                const std::string number = loops.substr(begin, loops.find(')', begin) - begin) + " = arith.constant ";
                loops.insert(PlaceOf(number, loops) + number.size(), "1");  // ten more at least
              }),
              Is(2), "uses shared memory that a copy is on its way to");
}

TEST_F(TensorCoresDeathTest, AWrongFragmentGivesWrongResults) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                // The words of rows g and g + 8 of the first instruction change places.
                const std::string call = "func.call @collage_multiply_tf32(";
                std::vector<size_t> begins{PlaceOf(call, loops) + call.size()};
                while (begins.size() < 7) begins.push_back(PlaceOf(", ", loops, begins.back()) + 2);
                const std::string first = loops.substr(begins[4], begins[5] - begins[4]);
                loops.erase(begins[4], first.size());
                loops.insert(PlaceOf(", ", loops, begins[4]) + 2, first);
              }),
              Is(1), "");
}

TEST_F(TensorCoresDeathTest, MatricesThatAreReadWithoutTheOrderOfTheirPiecesGiveWrongResults) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                // The exclusive or in the place of the first matrix's rows.
                const size_t load = PlaceOf("func.call @collage_load_matrices", loops);
                const std::string op = "arith.xori ";
                const size_t place = loops.rfind(op, load);
                if (place == std::string::npos) std::_Exit(3);
                loops.replace(place, op.size(), "arith.ori ");
              }),
              Is(1), "");
}

TEST_F(TensorCoresDeathTest, ABoundTooFarIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string bound = "arith.cmpi slt, ";
                size_t place = PlaceOf(bound, loops);
                const auto is_of_lanes = [&] {
                  return loops.substr(place, loops.find('\n', place) - place).ends_with("vector<32xi32>");
                };
                while (!is_of_lanes()) place = PlaceOf(bound, loops, place + 1);
                loops.replace(place, bound.size(), "arith.cmpi sle, ");
              }),
              Is(2), "copies 16 bytes from outside of the device's memory");
}

TEST_F(TensorCoresDeathTest, AMissingFenceBeforeGroupsOfWarpsIsFound) {
  EXPECT_EXIT(Multiply(
                  [](std::string& loops) {
                    const std::string fence = "func.call @collage_fence_copies() : () -> ()";
                    loops.erase(PlaceOf(fence, loops), fence.size());
                  },
                  kGroups),
              Is(2), "multiplies what no fence orders behind the copy of thread");
}

TEST_F(TensorCoresDeathTest, AMissingBarrierBeforeGroupsOfWarpsIsFound) {
  EXPECT_EXIT(Multiply(WithoutBarrier(1), kGroups), Is(2), "a byte that thread .*, in no order|copy is on its way");
}

TEST_F(TensorCoresDeathTest, ColumnsInAnotherOrderGiveWrongResultsOfGroups) {
  EXPECT_EXIT(Multiply(
                  [](std::string& loops) {
                    // The first copies of columns, behind two of rows, leave pieces in their order.
                    size_t copy = 0;
                    for (int i = 0; i < 4; ++i) {
                      copy = PlaceOf("func.call @collage_copy_quad(", loops, copy + 1);
                      if (i < 2) continue;
                      const size_t begin = loops.rfind("arith.xori ", copy) + 11, end = PlaceOf(" :", loops, begin);
                      const std::string piece = loops.substr(begin, loops.find(',', begin) - begin);
                      loops.replace(begin - 11, end - begin + 11, "arith.ori " + piece + ", " + piece);
                    }
                  },
                  kGroups),
              Is(1), "");
}

TEST_F(TensorCoresDeathTest, AMatrixInTheMiddleOfAPatternIsFound) {
  EXPECT_EXIT(Multiply(
                  [](std::string& loops) {
                    // 64 bytes behind the columns' beginning.
                    const std::string call = "func.call @collage_group_tf32_64(";
                    const size_t end = PlaceOf(") :", loops, PlaceOf(call, loops));
                    const size_t begin = loops.rfind(' ', end) + 1;
                    const std::string place = loops.substr(begin, end - begin);
                    const size_t line = loops.rfind('\n', begin);
                    loops.replace(begin, place.size(), "%moved");
                    loops.insert(line + 1,
                                 "%more = arith.constant 64 : i64\n%moved = arith.addi " + place + ", %more : i64\n");
                  },
                  kGroups),
              Is(2), "in the middle of a pattern");
}

TEST_F(TensorCoresDeathTest, TooLittleSharedMemoryIsFound) {
  EXPECT_EXIT(Multiply([](std::string& loops) {
                const std::string call = "func.call @collage_warp_of_block(";
                const size_t begin = PlaceOf(", ", loops, PlaceOf(call, loops)) + 2;
                const std::string name = loops.substr(begin, loops.find(')', begin) - begin) + " = arith.constant ";
                const size_t number = PlaceOf(name, loops) + name.size();
                loops.replace(number, loops.find(' ', number) - number, "12288");
              }),
              Is(2), "copies to what is no shared memory|shared memory");
}

}  // namespace
}  // namespace collage
