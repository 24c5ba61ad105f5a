// executable_files_test.cc: whatever a file says, loading and running it ends in an error or in results, never in a
// crash, a hang or an error of our own; and a flipped bit is always found. COLLAGE_PROPERTY_MODULES says how many
// files, the others of for_random_modules.h as there.
//
// Files are crafted from four that the native toolchain makes. Each is loaded and run in a process of its own, with
// little memory and time. Code itself is not crafted together with what it says that it was compiled for: machine code
// does what it does, which nobody can check (docs/c-api.md).
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>

#include "backends/builtin_toolchains.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/text.h"
#include "collage/runtime/c_api.h"
#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"
#include "lowering/lower.h"
#include "property/crafted_files.h"
#include "property/for_random_modules.h"
#include "runtime/random_inputs.h"
#include "support/file.h"
#include "target/annotations.h"
#include "worker/worker.h"

namespace collage {
namespace {

const Toolchain& Native() {
  if (ToolchainRegistry::Global().All().empty()) AddBuiltinToolchains(ToolchainRegistry::Global());
  return *ToolchainRegistry::Global().Native();
}

// ---- files to begin with ----

Expr Weight(Shape shape, uint64_t seed) {
  const Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  FillRandom(tensor, seed);
  return MakeConstant(tensor);
}

/// A call of `body` of `args` as one kernel.
Expr Partition(const std::vector<Expr>& args, const std::function<Expr(const std::vector<Expr>&)>& body,
               const std::function<BoundaryLayouts()>& layouts = nullptr) {
  std::vector<Var> params;
  for (const Expr& arg : args) {
    params.push_back(MakeVar(fmt::format("p{}", params.size()), InferType(arg, IRModule())));
  }
  Function function =
      MakeFunction(params, body({params.begin(), params.end()}), nullptr, {{kAttrPrimitive, int64_t{1}}});
  if (layouts) function = WithLayouts(function, layouts());
  return MakeCall(Expr(function), args);
}

std::string FileOf(const std::vector<Var>& params, const Expr& body, int num_threads) {
  PartitionCache cache(ToolchainRegistry::Global());
  const IRModule module = InferTypes(IRModule::FromFunction(MakeFunction(params, body)));
  const TemporaryFolder folder;
  Executable::FromPlan(Lower(module, num_threads, cache)).Save(folder / "a.clg");
  return ReadFile(folder / "a.clg");
}

/// One kernel.
std::string PlainFile() {
  const Var x = MakeVar("x", TensorType(Shape{4, 16}, kFloat32));
  return FileOf({x}, Partition({x}, [](const auto& p) { return MakeCall("nn.relu", {p[0]}); }), 1);
}

/// Several kernels with weights and workspace, layouts between them, a reshape, a constant as a result.
std::string LargeFile() {
  const Var x = MakeVar("x", TensorType(Shape{1, 8, 12, 12}, kFloat32));
  const auto last = [] { return BoundaryLayouts{{Layout::kPlain}, {Layout::kChannelsLast}}; };
  Expr value = Partition(
      {x},
      [](const auto& p) {
        const Expr conv = MakeCall("nn.conv2d", {p[0], Weight({16, 8, 3, 3}, 1)}, {{"padding", AttrValue::List{1, 1}}});
        return MakeCall("nn.relu", {conv});
      },
      last);
  value = Partition({value}, [](const auto& p) {
    return MakeCall("nn.max_pool2d", {p[0]},
                    {{"pool_size", AttrValue::List{2, 2}}, {"strides", AttrValue::List{2, 2}}});
  });
  value = MakeCall("reshape", {value}, {{"newshape", AttrValue::List{1, 576}}});
  value = Partition({value}, [](const auto& p) { return MakeCall("nn.dense", {p[0], Weight({64, 576}, 2)}); });
  const Expr ranks = Partition({value}, [](const auto& p) { return MakeCall("argsort", {p[0]}, {{"axis", -1}}); });
  const Expr share = Partition({value}, [](const auto& p) { return MakeCall("nn.softmax", {p[0]}, {{"axis", -1}}); });
  return FileOf({x}, MakeTuple({share, ranks, Weight({3, 5}, 3)}), 2);
}

/// Lists, closures, recursion, references, a kernel.
std::string ControlFlowFile() {
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @total(%l: List[Tensor[(4), float32]], %sum: Tensor[(4), float32]) -> Tensor[(4), float32] {
  match (%l) { Cons(%h, %t) => @total(%t, add(%sum, %h)), Nil => %sum }
}
def @list(%n: int32, %x: Tensor[(4), float32], %l: List[Tensor[(4), float32]]) -> List[Tensor[(4), float32]] {
  %0 = fn (%a: Tensor[(4), float32], Primitive=1) { (tanh(%a), nn.relu(%a)) };
  let %y = %0(%x);
  if (%n > 0) { @list(%n - 1, %y.0, Cons(%y.1, %l)) } else { %l }
}
def @main(%x: Tensor[(4), float32], %n: int32) -> (Tensor[(4), float32], Tensor[(3, 4), float32]) {
  let %r = ref(%x);
  let %scale = fn (%a: Tensor[(4), float32]) { multiply(%a, ref_read(%r)) };
  let %l = @list(minimum(%n, 5), %x, Nil);
  ref_write(%r, %scale(%x));
  (%scale(@total(%l, %x)), concatenate((expand_dims(%x, axis=0), full(1f, shape=[2, 4], dtype="float32")), axis=0))
})",
                                      "control_flow");
  return vm::Compile(module, {.toolchains = &ToolchainRegistry::Global()}).Serialize();
}

/// Kernels that are told shapes, and operators that find out theirs.
std::string DynamicShapesFile() {
  const IRModule module = ParseModule(R"(#[version = "0.0.5"]
def @main(%x: Tensor[(?, 16), float32], %y: Tensor[(?, 16), float32])
    -> (Tensor[(?, 16), float32], Tensor[(?, 2), int32]) {
  %0 = fn (%a: Tensor[(?, 16), float32], %b: Tensor[(?, 16), float32], Primitive=1) {
    nn.relu(multiply(add(%a, %b), tanh(%a)))
  };
  %1 = fn (%a: Tensor[(?, 16), float32], Primitive=1) { nn.softmax(%a, axis=-1) };
  let %z = %1(%0(%x, %y));
  (strided_slice(transpose(transpose(%z)), begin=[0, 0], end=[2, 16], strides=[1, 1]),
   cast(argwhere(greater(%z, 0.1f)), dtype="int32"))
})",
                                      "dynamic_shapes");
  vm::CompileOptions options;
  options.for_dynamic_shapes = &Native();
  options.num_threads = 2;
  return vm::Compile(module, options).Serialize();
}

struct Base {
  const char* name;
  bool is_program;
  std::string (*make)();
  std::string bytes;
};

// ---- loading and running ----

/// The fate of a file.
enum class Fate : uint8_t { kRan, kEndless, kCorrupt, kOtherError, kFailure };

struct Answer {
  Fate fate = Fate::kFailure;
  char text[1000] = "";
};

constexpr size_t kMostBytes = size_t{1} << 24;  // of inputs that are tried

void FillOwnInput(collage_instance* instance, size_t index, uint64_t seed) {
  collage_tensor tensor;
  if (collage_instance_get_input(instance, index, &tensor) != COLLAGE_OK) return;
  const Shape shape(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.dtype.code == COLLAGE_DTYPE_FLOAT && tensor.dtype.bits == 32 && tensor.dtype.lanes == 1) {
    FillRandom(Tensor::View(shape, kFloat32, tensor.data, nullptr), seed);
  }
}

/// By the C API. The status of the first call that failed.
collage_status RunByC(const std::string& bytes, RandomSource& random) {
  collage_executable* model = nullptr;
  collage_instance* run = nullptr;
  collage_status status = collage_executable_load_memory(bytes.data(), bytes.size(), "a.clg", &model);
  if (status != COLLAGE_OK) return status;
  status = collage_instance_create(model, &run);
  size_t num_inputs = 0;
  collage_executable_num_inputs(model, &num_inputs);
  for (size_t i = 0; i < num_inputs && status == COLLAGE_OK; ++i) {
    collage_tensor_info info;
    status = collage_executable_get_input(model, i, &info, sizeof info);
    if (status != COLLAGE_OK) break;
    std::vector<int64_t> shape(info.shape, info.shape + info.ndim);
    if (std::ranges::find(shape, -1) != shape.end()) {
      for (int64_t& size : shape) size = size < 0 ? random.Below(5) : size;
      status = collage_instance_set_input_shape(run, i, shape.data(), info.ndim);
    }
    if (status == COLLAGE_OK) FillOwnInput(run, i, i + 1);
  }
  if (status == COLLAGE_OK) status = collage_instance_run(run);
  // Programs may not end; this one is for plans and for loading.
  collage_instance_release(run);
  collage_executable_release(model);
  return status;
}

Tensor AnyTensor(const Shape& shape, DataType dtype, uint64_t seed) {
  const std::optional<size_t> bytes = CheckedBytes(shape, dtype);
  if (!bytes || *bytes > kMostBytes) throw Error(ErrorCategory::kResource, "an input is too large to try");
  const Tensor tensor = Tensor::Zeros(shape, dtype);
  if (!dtype.is_vector()) FillRandom(tensor, seed, -3, 3);
  return tensor;
}

void RunPlan(const std::string& bytes, RandomSource& random) {
  std::optional<Executable> executable;
  if (random.OneIn(4)) {
    const TemporaryFolder folder;
    WriteFile(folder / "a.clg", bytes);
    executable = Executable::Load(folder / "a.clg");
  } else {
    executable = Executable::FromBytes(std::as_bytes(std::span(bytes)), "a.clg");
  }
  ExecutionInstance instance(*executable);
  const std::vector<PortInfo> inputs = executable->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    instance.SetInput(i, AnyTensor(inputs[i].shape, inputs[i].dtype, i + 1));
  }
  instance.Run();
  instance.Run();
}

void RunProgram(const std::string& bytes, RandomSource& random) {
  const vm::Executable program = vm::Executable::Deserialize(bytes, "a.clg");
  program.Disassemble();
  std::vector<Value> args;
  const int64_t unknown = random.Below(5);
  for (const Var& param : program.Parameters("main")) {
    const TensorTypeNode* type = param->type_annotation() ? AsTensorType(param->type_annotation()) : nullptr;
    if (type == nullptr) throw Error(ErrorCategory::kUnsupported, "a parameter that is no tensor");
    Shape shape;
    for (const Dim& dim : type->shape()) shape.push_back(dim.is_any() ? unknown : dim.size());
    args.emplace_back(AnyTensor(shape, type->dtype(), args.size() + 1));
  }
  vm::Machine machine(program);
  for (int i = 0; i < 2; ++i) machine.Invoke("main", args, {.max_depth = 1000, .max_instructions = 10'000});
  program.CheckConstants();
}

void Note(Answer& answer, ErrorCategory category, const std::string& text) {
  answer.fate = category == ErrorCategory::kInternal  ? Fate::kFailure
                : category == ErrorCategory::kCorrupt ? Fate::kCorrupt
                                                      : Fate::kOtherError;
  std::strncpy(answer.text, text.c_str(), sizeof answer.text - 1);
}

/// In the child.
void Try(const std::string& bytes, bool is_program, RandomSource& random, Answer& answer) {
  try {
    if (random.OneIn(4) && !is_program) {
      const collage_status status = RunByC(bytes, random);
      if (status == COLLAGE_OK) {
        answer.fate = Fate::kRan;
      } else {
        const ErrorCategory category = status == COLLAGE_ERROR_INTERNAL  ? ErrorCategory::kInternal
                                       : status == COLLAGE_ERROR_CORRUPT ? ErrorCategory::kCorrupt
                                                                         : ErrorCategory::kInput;
        Note(answer, category, collage_last_error()->text);
      }
      return;
    }
    is_program ? RunProgram(bytes, random) : RunPlan(bytes, random);
    if (is_program) {
      collage_executable* model = nullptr;
      if (collage_executable_load_memory(bytes.data(), bytes.size(), "a.clg", &model) == COLLAGE_ERROR_INTERNAL) {
        return Note(answer, ErrorCategory::kInternal, collage_last_error()->text);
      }
      collage_executable_release(model);
    }
    answer.fate = Fate::kRan;
  } catch (const Error& error) {
    Note(answer, error.category(), error.Format());
    if (error.message().starts_with("the program takes more than")) answer.fate = Fate::kEndless;
  } catch (const std::bad_alloc&) {
    Note(answer, ErrorCategory::kResource, "out of memory");
  } catch (const std::exception& error) {
    Note(answer, ErrorCategory::kInternal, std::string("an exception that is no error: ") + error.what());
  }
}

void LimitThisProcess() {
#if !defined(__SANITIZE_ADDRESS__)
  // Beside what there is by now: blocks for weights, stacks of threads, and a little for what is computed.
  constexpr rlim_t kMore = rlim_t{400} << 20;
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + kMore;
  const rlimit memory{most, most};
  setrlimit(RLIMIT_AS, &memory);
#endif
  const rlimit seconds{10, 10};
  setrlimit(RLIMIT_CPU, &seconds);
  const rlimit core{0, 0};
  setrlimit(RLIMIT_CORE, &core);
  alarm(300);  // what waits for ever takes no time of a processor
}

/// The outcome of `attempt` in a process of its own.
Answer FateOf(const std::function<void(RandomSource&, Answer&)>& attempt, uint64_t seed) {
  void* memory = mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Answer;
  const pid_t child = fork();
  if (child == 0) {
    LimitThisProcess();
    RandomSource random(seed + 1000);
    attempt(random, *shared);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Answer answer = *shared;
  munmap(memory, sizeof(Answer));
  if (WIFSIGNALED(status)) {
    answer.fate = Fate::kFailure;
    const int signal = WTERMSIG(status);
    const bool hangs = signal == SIGXCPU || signal == SIGALRM || signal == SIGKILL;
    std::snprintf(answer.text, sizeof answer.text, "%s (signal %d, %s)", hangs ? "hangs" : "crashes", signal,
                  strsignal(signal));
  } else if (WEXITSTATUS(status) != 0) {
    answer.fate = Fate::kFailure;
    std::snprintf(answer.text, sizeof answer.text, "ends with exit code %d", WEXITSTATUS(status));
  }
  return answer;
}

Answer FateOf(const std::string& bytes, bool is_program, uint64_t seed) {
  return FateOf([&](RandomSource& random, Answer& answer) { Try(bytes, is_program, random, answer); }, seed);
}

Value AnyValue(const Type& type, RandomSource& random) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    std::vector<Value> fields;
    for (const Type& field : tuple->fields()) fields.push_back(AnyValue(field, random));
    return Value::Tuple(std::move(fields));
  }
  const TensorTypeNode& tensor = *AsTensorType(type);
  Shape shape;
  for (const Dim& dim : tensor.shape()) shape.push_back(dim.is_any() ? 2 : dim.size());
  return AnyTensor(shape, tensor.dtype(), static_cast<uint64_t>(random.Below(100)));
}

/// An operator of a program whose attributes say anything.
void TryOperator(const OpDef& op, const OpExample& example, RandomSource& random, Answer& answer) {
  try {
    std::vector<Value> args;
    for (const Type& type : example.args) args.push_back(AnyValue(type, random));
    ApplyOp(op, CompleteAttrs(op, CraftAttrs(CompleteAttrs(op, example.attrs), random)), args);
    answer.fate = Fate::kRan;
  } catch (const Error& error) {
    Note(answer, error.category(), error.Format());
  } catch (const std::bad_alloc&) {
    Note(answer, ErrorCategory::kResource, "out of memory");
  } catch (const std::exception& error) {
    Note(answer, ErrorCategory::kInternal, std::string("an exception that is no error: ") + error.what());
  }
}

class ExecutableFilesTest : public testing::Test {
 protected:
  /// Made by a worker, so that this process has neither a compiler nor threads when it forks.
  static std::vector<Base>& Bases() {
    static std::vector<Base> bases{{"plain", false, PlainFile, ""},
                                   {"large", false, LargeFile, ""},
                                   {"control flow", true, ControlFlowFile, ""},
                                   {"unknown shapes", true, DynamicShapesFile, ""}};
    return bases;
  }

  void SetUp() override {
    if (!Native().Probe().available) GTEST_SKIP() << Native().Probe().reason;
    if (!Bases().back().bytes.empty()) return;
    Worker worker([](const std::string& index, const SendProgress&) { return Bases()[std::stoul(index)].make(); },
                  {.timeout = std::chrono::seconds(300), .memory_bytes = 0});
    for (size_t i = 0; i < Bases().size(); ++i) {
      const Result<std::string> bytes = worker.Call(std::to_string(i));
      ASSERT_TRUE(bytes.ok()) << Bases()[i].name << ": " << bytes.reason().text;
      Bases()[i].bytes = *bytes;
      const Answer answer = FateOf(*bytes, Bases()[i].is_program, 1);
      ASSERT_EQ(answer.fate, Fate::kRan) << Bases()[i].name << ": " << answer.text;
    }
  }

  /// Calls `check(base, seed, random)` for as many files as the environment asks for.
  static void ForFiles(uint64_t fewest, const std::function<void(const Base&, uint64_t, RandomSource&)>& check) {
    const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
    const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", fewest);
    for (uint64_t seed = first; seed < first + count; ++seed) {
      RandomSource random(seed);
      check(random.Pick(Bases()), seed, random);
      if (HasFailure() && std::getenv("COLLAGE_PROPERTY_ALL") == nullptr) return;
    }
  }
};

TEST_F(ExecutableFilesTest, CraftedFilesDoNoHarm) {
  std::map<Fate, int> fates;
  ForFiles(400, [&](const Base& base, uint64_t seed, RandomSource& random) {
    const std::string bytes = base.is_program ? CraftProgram(base.bytes, random) : CraftExecutable(base.bytes, random);
    const Answer answer = FateOf(bytes, base.is_program, seed);
    ++fates[answer.fate];
    if (std::getenv("COLLAGE_PROPERTY_SHOW") != nullptr) fmt::print("seed {} {}: {}\n", seed, base.name, answer.text);
    if (answer.fate == Fate::kFailure) ADD_FAILURE() << "seed " << seed << ", " << base.name << ": " << answer.text;
  });
  fmt::print("crafted: {} ran, {} did not end, {} corrupt, {} other errors, {} failures\n", fates[Fate::kRan],
             fates[Fate::kEndless], fates[Fate::kCorrupt], fates[Fate::kOtherError], fates[Fate::kFailure]);
}

TEST(OperatorsOfFilesTest, AttributesMaySayAnything) {
  std::vector<Op> ops;
  for (const Op& op : AllOps()) {
    if (!op->def().examples.empty()) ops.push_back(op);
  }
  const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
  const uint64_t count = Setting("COLLAGE_PROPERTY_MODULES", 300);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    RandomSource random(seed);
    const OpDef& op = random.Pick(ops)->def();
    const OpExample& example = random.Pick(op.examples);
    const Answer answer = FateOf([&](RandomSource& own, Answer& found) { TryOperator(op, example, own, found); }, seed);
    if (answer.fate == Fate::kFailure) ADD_FAILURE() << "seed " << seed << ", " << op.name << ": " << answer.text;
    if (testing::Test::HasFailure() && std::getenv("COLLAGE_PROPERTY_ALL") == nullptr) return;
  }
}

TEST_F(ExecutableFilesTest, FlippedBitsAreFound) {
  int files = 0;
  ForFiles(200, [&](const Base& base, uint64_t seed, RandomSource& random) {
    const std::string bytes = FlipBits(base.bytes, random);
    if (bytes == base.bytes) return;  // the same bit twice
    ++files;
    const Answer answer = FateOf(bytes, base.is_program, seed);
    // Where the version is among several bytes that are wrong, a file may be one of another version.
    const bool is_refused = std::string_view(answer.text).find("this Collage reads") != std::string_view::npos;
    if (answer.fate == Fate::kCorrupt || is_refused) return;
    ADD_FAILURE() << "seed " << seed << ", " << base.name << ": " << answer.text;
  });
  fmt::print("damaged: {} files, each refused as corrupt but for the failures above\n", files);
}

}  // namespace
}  // namespace collage
