// executable.cc: files whose checksums fit and whose plans, instructions and pieces say anything. They run, or are
// refused before anything in them does.
#include "collage/runtime/executable.h"

#include <vector>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/runtime/c_api.h"
#include "collage/vm/vm.h"
#include "fuzz/target.h"
#include "lowering/lower.h"
#include "property/crafted_files.h"
#include "support/file.h"
#include "unit/runtime/executable_bytes.h"

namespace collage::fuzz {
namespace {

// Neither has machine code: a fuzzer that finds some that is run would only find that it is not the one that was
// checked.
constexpr const char* kProgram = R"(#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @list(%n: int32, %x: Tensor[(4), float32]) -> List[Tensor[(4), float32]] {
  if (%n > 0) { Cons(tanh(%x), @list(%n - 1, %x)) } else { Nil }
}
def @main(%x: Tensor[(4), float32], %n: int32) -> Tensor[(4), float32] {
  let %r = ref(%x);
  match (@list(minimum(%n, 5), ref_read(%r))) { Cons(%h, _) => %h, Nil => %x }
})";

constexpr size_t kMostBytes = 1 << 20;

template <typename Save>
std::string BytesOf(const Save& save) {
  const TemporaryFolder folder;
  save(folder / "a.clg");
  return ReadFile(folder / "a.clg");
}

std::string PlanFile() {
  PartitionCache cache(ToolchainRegistry::Global());
  const Var x = MakeVar("x", TensorType(Shape{4, 6}, kFloat32));
  const Expr other = MakeCall("reshape", {x}, {{"newshape", AttrValue::List{6, 4}}});
  const Function main = MakeFunction({x}, MakeTuple({other, MakeConstant(Tensor::Zeros({3, 5}, kFloat32))}));
  const IRModule module = InferTypes(IRModule::FromFunction(main));
  return BytesOf([&](const std::filesystem::path& path) { Executable::FromPlan(Lower(module, 1, cache)).Save(path); });
}

std::string ProgramFile() {
  const vm::Executable program = vm::Compile(ParseModule(kProgram, "program"), {});
  return BytesOf([&](const std::filesystem::path& path) { program.Save(path); });
}

void RequireNoneInternal(collage_status status) { Require(status != COLLAGE_ERROR_INTERNAL, "an internal error"); }

void SetZeros(collage_executable* executable, collage_instance* instance) {
  size_t count = 0;
  RequireNoneInternal(collage_executable_num_inputs(executable, &count));
  for (size_t i = 0; i < count; ++i) {
    collage_tensor_info info{};
    RequireNoneInternal(collage_executable_get_input(executable, i, &info, sizeof info));
    if (info.size_bytes > kMostBytes) continue;
    const std::vector<char> zeros(info.size_bytes + 1);
    RequireNoneInternal(collage_instance_copy_input(instance, i, zeros.data(), info.size_bytes));
  }
}

/// Loads a file, and runs it on zeros.
void Run(const std::string& bytes) {
  collage_executable* executable = nullptr;
  const collage_status loaded = collage_executable_load_memory(bytes.data(), bytes.size(), "fuzz", &executable);
  RequireNoneInternal(loaded);
  if (loaded != COLLAGE_OK) return;
  collage_instance* instance = nullptr;
  const collage_status created = collage_instance_create(executable, &instance);
  RequireNoneInternal(created);
  if (created == COLLAGE_OK) {
    SetZeros(executable, instance);
    RequireNoneInternal(collage_instance_run(instance));
  }
  collage_instance_release(instance);
  collage_executable_release(executable);
}

}  // namespace

void ReadExecutable(const std::string& given) {
  static const std::string plan = PlanFile(), program = ProgramFile();
  std::string bytes = given;
  const int kind = TakeNumber(bytes) % 6;
  RandomSource random(bytes);
  switch (kind) {
    case 0: return Run(CraftExecutable(plan, random));
    case 1: return Run(CraftProgram(program, random));
    case 2: return Run(WithPlanText(plan, bytes));
    case 3: return Run(WithPlanText(program, bytes));
    case 4: return Run(WithBytecode(program, bytes));
    default: return Run(bytes);
  }
}

}  // namespace collage::fuzz
