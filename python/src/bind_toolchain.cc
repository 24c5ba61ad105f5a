// bind_toolchain.cc: toolchains that are written in Python: the hooks of toolchain.h call methods of an object, and
// what they compile is run by calling it back, or by a loader of C++.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "bindings.h"
#include "casters.h"
#include "collage/compile.h"
#include "collage/frontend/onnx_export.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "driver/serve_worker.h"
#include "worker/worker.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

using Json = nlohmann::json;

// ---- layouts ----

const char* NameOf(Layout layout) { return layout == Layout::kPlain ? "plain" : "channels_last"; }

std::vector<std::string> NamesOf(const std::vector<Layout>& layouts) {
  std::vector<std::string> names;
  for (Layout layout : layouts) names.emplace_back(NameOf(layout));
  return names;
}

std::vector<Layout> LayoutsFrom(nb::handle names, const std::vector<bool>& eligible) {
  std::vector<Layout> layouts;
  for (const std::string& name : nb::cast<std::vector<std::string>>(names)) {
    if (name != "plain" && name != "channels_last") {
      throw Error(ErrorCategory::kInput, fmt::format("there is no layout '{}'", name), "",
                  "there are: plain, channels_last");
    }
    const bool may = layouts.size() < eligible.size() && eligible[layouts.size()];
    if (name == "channels_last" && !may) {
      throw Error(ErrorCategory::kInput, fmt::format("value {} at the boundary is always plain", layouts.size()));
    }
    layouts.push_back(name == "plain" ? Layout::kPlain : Layout::kChannelsLast);
  }
  if (layouts.size() != eligible.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("{} layouts for {} values", layouts.size(), eligible.size()));
  }
  return layouts;
}

/// None or "" is yes, a text the reason for a no.
Result<void> AnswerFrom(const nb::object& answer, const std::string& origin) {
  if (answer.is_none()) return {};
  std::string reason = nb::cast<std::string>(answer);
  if (reason.empty()) return {};
  return Reason{std::move(reason), origin};
}

// ---- kernels ----

/// A tensor at a kernel's boundary, as an array.
struct Port {
  Shape shape;
  DataType dtype;
};

Json ToJson(const std::vector<Type>& types, const std::vector<Layout>& layouts) {
  Json rows = Json::array();
  for (size_t i = 0; i < types.size(); ++i) {
    const TensorTypeNode& type = *AsTensorType(types[i]);
    rows.push_back({{"shape", PhysicalShape(type.static_shape(), layouts[i])}, {"dtype", type.dtype().ToString()}});
  }
  return rows;
}

std::vector<Port> PortsFrom(const Json& rows) {
  std::vector<Port> ports;
  for (const Json& row : rows)
    ports.push_back({row.at("shape"), DataType::FromString(row.at("dtype").get<std::string>())});
  return ports;
}

/// A callable and the arrays that it is called with.
class PythonKernel : public Kernel {
 public:
  PythonKernel(nb::object run, std::vector<Port> inputs, std::vector<Port> outputs)
      : run_(std::move(run)), input_ports_(std::move(inputs)), output_ports_(std::move(outputs)) {}

  ~PythonKernel() override {
    nb::gil_scoped_acquire gil;
    run_.reset();
    inputs_.reset();
    outputs_.reset();
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    nb::gil_scoped_acquire gil;
    inputs_ = ArraysOver(inputs, input_ports_, /*writable=*/false);
    outputs_ = ArraysOver(outputs, output_ports_, /*writable=*/true);
  }

  void Run() override {
    nb::gil_scoped_acquire gil;
    run_(inputs_, outputs_);
  }

 private:
  static nb::object ArraysOver(std::span<void* const> addresses, const std::vector<Port>& ports, bool writable) {
    COLLAGE_CHECK(addresses.size() == ports.size()) << ports.size() << " ports, " << addresses.size() << " addresses";
    nb::list arrays;
    for (size_t i = 0; i < ports.size(); ++i) {
      arrays.append(ToNumpy(Tensor::View(ports[i].shape, ports[i].dtype, addresses[i], nullptr), writable));
    }
    return nb::tuple(arrays);
  }

  nb::object run_;
  nb::object inputs_;
  nb::object outputs_;
  std::vector<Port> input_ports_;
  std::vector<Port> output_ports_;
};

[[noreturn]] void Damaged(const std::string& how) {
  throw Error(ErrorCategory::kCorrupt, "no kernel of a toolchain of Python: " + how);
}

/// Python objects that toolchains refer to. Toolchains live as long as the process, but the interpreter must get the
/// objects back before it ends: otherwise nanobind reports everything that their modules hold as leaked.
std::vector<nb::object>& Held() {
  static auto* const held = new std::vector<nb::object>;  // its destructor would run after the interpreter's end
  return *held;
}

nb::handle Hold(nb::object object) {
  Held().push_back(std::move(object));
  return Held().back();
}

/// Blobs: the length of a text (8 bytes), the text (the ports, as JSON), what the toolchain gave.
class PythonLoader : public KernelLoader {
 public:
  /// `toolchain` lives as long as the process.
  explicit PythonLoader(nb::handle toolchain) : toolchain_(toolchain) {}

  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    uint64_t size = 0;
    if (image.blob.size() < sizeof size) Damaged("too short");
    std::memcpy(&size, image.blob.data(), sizeof size);
    const std::span<const std::byte> rest = image.blob.subspan(sizeof size);
    if (size > rest.size()) Damaged("its description is cut off");
    const Json ports = Json::parse(std::string_view(reinterpret_cast<const char*>(rest.data()), size), nullptr,
                                   /*allow_exceptions=*/false);
    if (!ports.is_object()) Damaged("its description is no JSON");
    const std::span<const std::byte> payload = rest.subspan(size);
    nb::gil_scoped_acquire gil;
    nb::list constants;
    for (const Tensor& constant : image.constants) constants.append(ToNumpy(constant, /*writable=*/false));
    nb::object run = toolchain_.attr("load")(nb::bytes(payload.data(), payload.size()), constants, image.num_threads);
    return std::make_unique<PythonKernel>(std::move(run), PortsFrom(ports.at("inputs")),
                                          PortsFrom(ports.at("outputs")));
  }

 private:
  nb::handle toolchain_;
};

// ---- the hooks ----

class PythonToolchain : public Toolchain {
 public:
  /// `self` is a collage.toolchain.Toolchain; it is held until the interpreter ends.
  explicit PythonToolchain(nb::object self)
      : name_(nb::cast<std::string>(self.attr("name"))),
        description_(nb::cast<std::string>(self.attr("description"))),
        priority_(nb::cast<int>(self.attr("priority"))),
        max_depth_(nb::cast<int>(self.attr("max_depth"))),
        wants_maximal_(nb::cast<bool>(self.attr("wants_maximal"))),
        preamble_(nb::cast<std::vector<std::string>>(self.attr("preamble"))),
        license_(nb::cast<std::string>(self.attr("license"))),
        self_(Hold(std::move(self))) {
    for (const auto& [other, reason] : nb::cast<std::map<std::string, std::string>>(self_.attr("incompatible"))) {
      incompatible_.push_back({other, reason});
    }
    const auto fusion = nb::cast<std::string>(self_.attr("fusion"));
    if (fusion == "none") {
      fusion_style_ = FusionStyle::kNoFusion;
    } else if (fusion == "tvm") {
      fusion_style_ = FusionStyle::kTVMFusion;
    } else if (fusion == "arbitrary") {
      fusion_style_ = FusionStyle::kArbitrary;
    } else {
      throw Error(ErrorCategory::kInput, fmt::format("there is no fusion style '{}'", fusion), "",
                  "there are: none, tvm, arbitrary");
    }
    for (nb::handle row : self_.attr("pattern_table")()) {
      PatternTableEntry entry{nb::cast<std::string>(row.attr("name")), nb::cast<std::string>(row.attr("pattern")), {}};
      entry.is_greedy = nb::cast<bool>(row.attr("is_greedy"));
      nb::object predicate = row.attr("predicate");
      if (!predicate.is_none()) {
        entry.predicate = [held = Hold(std::move(predicate)), name = name_](const Function& composite) {
          nb::gil_scoped_acquire gil;
          return AnswerFrom(held(composite), name);
        };
      }
      patterns_.push_back(std::move(entry));
    }
  }

  nb::handle self() const { return self_; }
  std::string LoaderName() const { return "python." + name_; }

  std::string name() const override { return name_; }
  std::string description() const override { return description_; }
  int priority() const override { return priority_; }
  FusionStyle fusion_style() const override { return fusion_style_; }
  int max_depth() const override { return max_depth_; }
  std::string license() const override { return license_; }
  std::vector<Incompatibility> Incompatible() const override { return incompatible_; }
  bool wants_maximal() const override { return wants_maximal_; }
  std::vector<std::string> Preamble() const override { return preamble_; }
  std::vector<PatternTableEntry> PatternTable() const override { return patterns_; }

  Availability Probe() const override {
    nb::gil_scoped_acquire gil;
    try {
      const nb::object found = self_.attr("probe")();
      return {nb::cast<bool>(found.attr("available")), nb::cast<std::string>(found.attr("version")),
              nb::cast<std::string>(found.attr("reason")), nb::cast<std::string>(found.attr("hint"))};
    } catch (nb::python_error& error) {
      // One that cannot even say whether it is here must not keep others from being used.
      const std::string text = nb::str(error.value()).c_str();
      return {false, "",
              fmt::format("its probe raised {}: {}", nb::cast<std::string>(error.type().attr("__name__")), text), ""};
    }
  }

  Result<void> SupportsCall(const CallNode& call) const override {
    // The node is somebody's; Python may keep what it gets.
    const Expr copy = MakeCall(call.callee(), call.args(), call.attrs(), call.type_args());
    copy->set_checked_type(call.checked_type());
    copy->share_span(call);
    nb::gil_scoped_acquire gil;
    return AnswerFrom(self_.attr("supports_call")(copy), name_);
  }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    nb::gil_scoped_acquire gil;
    std::vector<BoundaryLayouts> choices;
    for (nb::handle choice : self_.attr("layouts")(function, eligible_inputs, eligible_outputs)) {
      choices.push_back({LayoutsFrom(choice[0], eligible_inputs), LayoutsFrom(choice[1], eligible_outputs)});
    }
    if (choices.empty()) throw Error(ErrorCategory::kInput, fmt::format("toolchain '{}' gives no layouts", name_));
    return choices;
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    nb::gil_scoped_acquire gil;
    nb::object made;
    try {
      made = self_.attr("relay_to_runtime")(request.function, NamesOf(request.layouts.inputs),
                                            NamesOf(request.layouts.outputs), request.num_threads);
    } catch (nb::python_error& error) {
      // Declines are UnsupportedError; anything else it raises is its failure, not the compiler's.
      const bool declines = error.matches(nb::module_::import_("collage.errors").attr("UnsupportedError"));
      const std::string text = nb::str(error.value()).c_str();
      const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
      return Reason{declines ? text : fmt::format("{}: {}", type, text), name_};
    }
    CompiledPartition partition;
    partition.loader = nb::cast<std::string>(made.attr("loader"));
    const auto payload = nb::cast<nb::bytes>(made.attr("blob"));
    const auto append = [&](const void* data, size_t size) {
      const auto* bytes = static_cast<const std::byte*>(data);
      partition.blob.insert(partition.blob.end(), bytes, bytes + size);
    };
    if (partition.loader.empty()) {
      partition.loader = LoaderName();
      std::vector<Type> params;
      for (const Var& param : request.function->params()) params.push_back(param->checked_type());
      const std::string ports = Json{{"inputs", ToJson(FlattenTensorTypes(TupleType(params)), request.layouts.inputs)},
                                     {"outputs", ToJson(FlattenTensorTypes(request.function->body()->checked_type()),
                                                        request.layouts.outputs)}}
                                    .dump();
      const uint64_t size = ports.size();
      append(&size, sizeof size);
      append(ports.data(), ports.size());
    }
    append(payload.c_str(), payload.size());
    for (nb::handle constant : made.attr("constants")) partition.constants.push_back(TensorFrom(constant).Clone());
    partition.source = nb::cast<std::string>(made.attr("source"));
    return partition;
  }

 private:
  std::string name_;
  std::string description_;
  int priority_;
  int max_depth_;
  bool wants_maximal_;
  std::vector<std::string> preamble_;
  std::string license_;
  std::vector<Incompatibility> incompatible_;
  nb::handle self_;
  FusionStyle fusion_style_ = FusionStyle::kNoFusion;
  std::vector<PatternTableEntry> patterns_;
};

void Register(nb::object self) {
  ProbeToolchains();  // the built-in ones come first
  const auto revision = nb::cast<std::string>(self.attr("revision"));
  auto toolchain = std::make_unique<PythonToolchain>(std::move(self));
  const std::string loader = toolchain->LoaderName();
  const nb::handle held = toolchain->self();
  ToolchainRegistry::Global().Add(std::move(toolchain), revision);
  AddKernelLoader(loader, std::make_unique<PythonLoader>(held));
}

// ---- workers: children of this process that go on in Python ----

PyGILState_STATE forking_state;

void BeforeFork() {
  forking_state = PyGILState_Ensure();
  PyOS_BeforeFork();
}

void AfterForkInParent() {
  PyOS_AfterFork_Parent();
  PyGILState_Release(forking_state);
}

void AfterForkInChild() {
  PyOS_AfterFork_Child();
  PyGILState_Release(forking_state);
}

}  // namespace

void BindToolchain(nb::module_& m) {
  SetForkHooks({BeforeFork, AfterForkInParent, AfterForkInChild});
  m.def("register_toolchain", &Register, "toolchain"_a, "See `collage.register_toolchain`.");
  m.def(
      "let_go_of_toolchains", [] { Held().clear(); },
      "Called when the interpreter ends: toolchains are not asked any more.");
  m.def(
      "why_not_onnx",
      [](const Expr& call) -> std::string {
        const auto* node = As<CallNode>(call);
        if (node == nullptr || node->op() == nullptr) return "no call of an operator";
        const Result<void> answer = CanExportOnnx(*node);
        return answer.ok() ? "" : answer.reason().text;
      },
      "call"_a, "Why a typed call cannot be exported to ONNX; empty when it can.");
  m.def(
      "serve_worker",
      [](const std::string& wanted, double timeout_seconds, int64_t memory_bytes) {
        nb::gil_scoped_release release;
        ServeWorker(wanted, std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds * 1000)), memory_bytes);
      },
      "wanted"_a, "timeout_seconds"_a, "memory_bytes"_a,
      "`collage worker`, with the toolchains of this process: answers lines of standard input until it ends.");
}

}  // namespace collage::python
