// libraries.cc: see libraries.h. Which libraries there are, their toolchains say: nothing here names one.
#include "backends/native/description/libraries.h"

#include <algorithm>
#include <sstream>

#include "collage/support/error.h"
#include "collage/target/toolchain.h"

namespace collage::native {
namespace {

std::vector<MicroKernel> MicroKernelsOf(const Toolchain& toolchain) {
  const auto* source = dynamic_cast<const HasMicroKernels*>(&toolchain);
  return source == nullptr ? std::vector<MicroKernel>{} : source->MicroKernels();
}

const Toolchain& ToolchainOf(const std::string& name) {
  std::string known;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    if (MicroKernelsOf(*toolchain).empty() && CompositeCallsOf(*toolchain).empty()) continue;
    if (toolchain->name() == name) return *toolchain;
    known += (known.empty() ? "" : ", ") + toolchain->name();
  }
  throw Error(ErrorCategory::kInput, "option 'libs' of 'native': there is no library '" + name + "' to call", "",
              "there are: " + known);
}

}  // namespace

bool CalledLibrary::Has(const std::string& label) const {
  return std::ranges::any_of(calls, [&](const CompositeCall& row) { return row.match.name == label; });
}

const CalledLibrary* LibraryOf(const Expr& expr, const std::vector<CalledLibrary>& libraries) {
  const CallNode* call = As<CallNode>(expr);
  const FunctionNode* composite = call == nullptr ? nullptr : As<FunctionNode>(call->callee());
  if (composite == nullptr || !composite->attrs().Has("Composite")) return nullptr;
  const std::string& label = composite->attrs().String("Composite");
  const auto found = std::ranges::find_if(libraries, [&](const CalledLibrary& one) { return one.Has(label); });
  return found == libraries.end() ? nullptr : &*found;
}

std::vector<CalledLibrary> ReadLibraries(const std::string& text) {
  std::vector<CalledLibrary> libraries;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const auto is_it = [&](const CalledLibrary& one) { return one.name == name; };
    if (std::any_of(libraries.begin(), libraries.end(), is_it)) {
      throw Error(ErrorCategory::kInput, "option 'libs' of 'native': '" + name + "' is given twice");
    }
    const Toolchain& toolchain = ToolchainOf(name);
    const Availability here = toolchain.Probe();
    if (!here.available) {
      throw Error(ErrorCategory::kUnavailable, "option 'libs' of 'native': '" + name + "' is not here: " + here.reason,
                  "", here.hint);
    }
    const std::string& revision = ToolchainRegistry::Global().RevisionOf(toolchain);
    libraries.push_back({name, &toolchain, here.version + (revision.empty() ? "" : " " + revision),
                         MicroKernelsOf(toolchain), CompositeCallsOf(toolchain)});
  }
  return libraries;
}

}  // namespace collage::native
