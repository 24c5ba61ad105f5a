// python_kernel.cc: see python_kernel.h.
#include "python_kernel.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "casters.h"
#include "collage/support/error.h"

namespace nb = nanobind;

namespace collage::python {
namespace {

using Json = nlohmann::json;

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

/// Returns the description of a blob, and its payload.
std::pair<std::string_view, std::span<const std::byte>> Split(std::span<const std::byte> blob) {
  uint64_t size = 0;
  if (blob.size() < sizeof size) Damaged("too short");
  std::memcpy(&size, blob.data(), sizeof size);
  const std::span<const std::byte> rest = blob.subspan(sizeof size);
  if (size > rest.size()) Damaged("its description is cut off");
  return {{reinterpret_cast<const char*>(rest.data()), size}, rest.subspan(size)};
}

class PythonLoader : public KernelLoader {
 public:
  explicit PythonLoader(nb::handle toolchain) : toolchain_(toolchain) {}

  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const auto [description, payload] = Split(image.blob);
    const Json ports = Json::parse(description, nullptr, /*allow_exceptions=*/false);
    if (!ports.is_object()) Damaged("its description is no JSON");
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

}  // namespace

std::vector<std::byte> DescribePorts(const PartitionRequest& request) {
  std::vector<Type> params;
  for (const Var& param : request.function->params()) params.push_back(param->checked_type());
  const std::string ports =
      Json{{"inputs", ToJson(FlattenTensorTypes(TupleType(params)), request.layouts.inputs)},
           {"outputs", ToJson(FlattenTensorTypes(request.function->body()->checked_type()), request.layouts.outputs)}}
          .dump();
  const uint64_t size = ports.size();
  std::vector<std::byte> blob(sizeof size + ports.size());
  std::memcpy(blob.data(), &size, sizeof size);
  std::memcpy(blob.data() + sizeof size, ports.data(), ports.size());
  return blob;
}

std::span<const std::byte> PayloadOf(std::span<const std::byte> blob) { return Split(blob).second; }

std::unique_ptr<KernelLoader> MakePythonLoader(nb::handle toolchain) {
  return std::make_unique<PythonLoader>(toolchain);
}

}  // namespace collage::python
