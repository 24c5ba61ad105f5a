// bundle.cc: files are planned with their content, then written.
#include "bundle/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "bundle/elf_image.h"
#include "bundle/licence_texts.h"
#include "bundle/shared_libraries.h"
#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/toolchain.h"
#include "driver/builtins.h"
#include "support/dynamic_library.h"
#include "support/file.h"
#include "support/programs/run_tool.h"
#include "target/left_out.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

/// Toolchains that nobody asks for come along if they add no more than this.
constexpr int64_t kSmallBytes = int64_t{8} << 20;
constexpr const char* kPortable = "portable";
/// Kinds of archives: the end of the file's name, and tar's option.
struct ArchiveKind {
  std::string_view suffix;
  const char* option;
};
constexpr std::array kArchives{ArchiveKind{".tar.xz", "--xz"}, ArchiveKind{".tar.gz", "--gzip"}};
/// Folders of libraries that stand in for those of others, by their prefix.
constexpr std::string_view kOwnPrefix = "collage_";
constexpr const char* kDocuments = "share/doc/Collage";
/// The first letters of libraries' names, and of the names that copies of them have in a Python package.
constexpr std::string_view kLibraryPrefix = "lib";
constexpr std::string_view kCopyPrefix = "clg";
/// Libraries of the compiler that every system with Python packages in C++ has (PEP 600).
constexpr std::array<std::string_view, 2> kOfCompiler{"libstdc++.so.6", "libgcc_s.so.1"};

struct PlannedFile {
  fs::path from;
  std::string bytes;
  bool is_program = false;
};

/// By place in the bundle, "lib/libcollage_rt_NAME.so".
using FileSet = std::map<std::string, PlannedFile>;

int64_t BytesOf(const FileSet& files) {
  int64_t sum = 0;
  for (const auto& [place, file] : files) sum += static_cast<int64_t>(file.bytes.size());
  return sum;
}

/// Whether a module, "libcollage_rt_NAME_impl.so", is of the toolchain NAME.
bool IsModuleOf(const std::string& file, const std::string& name) {
  const std::string loader = fmt::format("libcollage_rt_{}", name);
  return file.starts_with(loader + ".") || file.starts_with(loader + "_") ||
         file == fmt::format("libcollage_{}_compiler.so", name) ||
         file == fmt::format("libcollage_toolchain_{}.so", name);
}

/// Whether a file is called as a library, with or without a version: "libX.so", "libX.so.0.1".
bool IsLibraryName(const std::string& file) { return file.ends_with(".so") || file.find(".so.") != file.npos; }

/// Whether a file is a link to one of the same folder: a library by the name without its version, for linkers.
bool IsLinkBeside(const fs::directory_entry& file) {
  return file.is_symlink() && !fs::read_symlink(file.path()).has_parent_path();
}

/// The modules and libraries of this Collage by file name, those of $COLLAGE_MODULE_PATH first.
std::map<std::string, fs::path> FindOwnLibraries() {
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : ModuleFolders()) {
    std::error_code ignored;  // a folder that cannot be read holds no modules
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libcollage") && IsLibraryName(name) && !IsLinkBeside(entry))
        found.emplace(name, entry.path());
    }
  }
  return found;
}

/// The path of `file` in a folder of Python packages, "vendor/lib/libvendor.so.1".
std::optional<fs::path> PathInPackages(const fs::path& file) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(file, ignored);
  for (const fs::path& folder : PackageFolders()) {
    const fs::path inside = real.lexically_relative(folder);
    if (!inside.empty() && *inside.begin() != "..") return inside;
  }
  return std::nullopt;
}

class Bundler {
 public:
  explicit Bundler(const BundleOptions& options)
      : options_(options), libraries_(ModuleFolders().back()), own_(FindOwnLibraries()) {
    interpreter_ = ElfImage::Read(options.command).Interpreter();
    report_.output = options.output;
    if (!is_package()) return;
    for (const auto& [name, library] : SharedLibrariesOf(options.command, interpreter_)) {
      if (own_.contains(name) || StaysBehind(name, library) || !name.starts_with(kLibraryPrefix)) continue;
      names_of_copies_[name] = std::string(kCopyPrefix) + name.substr(kLibraryPrefix.size());
    }
  }

  void Plan() {
    CheckNames();
    AddCore();
    if (is_package()) AddPackage();
    // Toolchains that were asked for come first: libraries that they need cost nothing more for others.
    const std::vector<const Toolchain*> all = ToolchainRegistry::Global().All();
    std::map<std::string, BundledToolchain> answers;
    for (const bool asked : {true, false}) {
      for (const Toolchain* toolchain : all) {
        if (IsAskedFor(*toolchain) == asked) answers[toolchain->name()] = Decide(*toolchain);
      }
    }
    std::string left_out;
    for (const Toolchain* toolchain : all) {
      report_.toolchains.push_back(answers[toolchain->name()]);
      const BundledToolchain& last = report_.toolchains.back();
      // With a package, toolchains give reasons of their own: pip may install what they need.
      if (!last.is_included && last.bytes > 0 && !is_package()) left_out += last.name + "\n";
    }
    files_[InLibraries(kLeftOutFile)] = {{}, left_out};
    AddDocuments();
  }

  /// Writes all below `folder`, which is there and empty.
  BundleReport Write(const fs::path& folder) {
    for (const auto& [place, file] : files_) {
      const fs::path path = folder / place;
      fs::create_directories(path.parent_path());
      WriteFile(path, file.bytes);
      if (file.is_program) fs::permissions(path, fs::perms{0755});
    }
    report_.tree_bytes = BytesOf(files_);
    report_.num_files = static_cast<int>(files_.size());
    return report_;
  }

 private:
  static std::string InLibraries(const std::string& name) { return "lib/" + name; }
  bool is_package() const { return !options_.package.empty(); }

  /// Whether the other machine has the library: with a package, those of the compiler and of other packages.
  bool StaysBehind(const std::string& name, const fs::path& library) const {
    return is_package() && (std::ranges::count(kOfCompiler, name) > 0 || PathInPackages(library).has_value());
  }

  /// The name of a library's copy.
  const std::string& NameOfCopy(const std::string& name) const {
    const auto renamed = names_of_copies_.find(name);
    return renamed == names_of_copies_.end() ? name : renamed->second;
  }

  bool IsAskedFor(const Toolchain& toolchain) const {
    return toolchain.is_native() || std::ranges::count(options_.toolchains, toolchain.name()) > 0;
  }

  void CheckNames() const {
    const ToolchainRegistry& registry = ToolchainRegistry::Global();
    for (const std::string& name : options_.toolchains) registry.Get(name, "--toolchains");
  }

  /// Plans a program or library in `files`, unless it is planned already.
  void AddImage(FileSet& files, const std::string& place, const fs::path& from, const std::string& search_path) {
    if (files_.contains(place) || files.contains(place)) return;
    ElfImage image = ElfImage::Read(from);
    const bool is_program = !image.Interpreter().empty();
    // Copies of the system's libraries have no path: that of whatever is loaded before them holds for them as well,
    // which is the command, or in a process of Python any module.
    image.SetSearchPath(search_path, /*is_inherited=*/is_program || is_package());
    image.RenameLibraries(names_of_copies_);
    image.Strip();
    report_.libc = std::max(report_.libc, image.NeededLibc());
    files[place] = {from, image.bytes(), is_program};
  }

  /// Also plans the libraries that it needs.
  void AddWithLibraries(FileSet& files, const std::string& place, const fs::path& from, std::string search_path) {
    std::set<fs::path> folders;  // of other packages
    for (const auto& [name, library] : SharedLibrariesOf(from, interpreter_)) {
      const auto own = own_.find(name);
      if (own != own_.end()) {
        AddImage(files, InLibraries(name), own->second, "$ORIGIN");
      } else if (!StaysBehind(name, library)) {
        AddImage(files, InLibraries(NameOfCopy(name)), library, "$ORIGIN");
      } else if (const auto inside = PathInPackages(library)) {
        folders.insert(inside->parent_path());
        report_.left_to_packages.insert(inside->string());
      }
    }
    const fs::path folder = fs::path(options_.package).filename() / fs::path(place).parent_path();
    for (const fs::path& other : folders) search_path += ":$ORIGIN/" + other.lexically_relative(folder).string();
    AddImage(files, place, from, search_path);
  }

  /// Plans a module: its portable form, where there is one.
  void AddModule(FileSet& files, const std::string& name, const fs::path& path) {
    const fs::path portable = path.parent_path() / kPortable / name;
    std::error_code ignored;
    AddWithLibraries(files, InLibraries(name), fs::exists(portable, ignored) ? portable : path, "$ORIGIN");
  }

  /// The command, the libraries, and modules that are of no toolchain, such as those of devices.
  void AddCore() {
    const std::vector<const Toolchain*> all = ToolchainRegistry::Global().All();
    AddWithLibraries(files_, "bin/collage", options_.command, "$ORIGIN/../lib");
    for (const auto& [name, path] : own_) {
      const auto is_of = [&](const Toolchain* toolchain) { return IsModuleOf(name, toolchain->name()); };
      if (std::ranges::none_of(all, is_of)) AddModule(files_, name, path);
    }
    for (const auto& folder : fs::directory_iterator(libraries_)) {
      const std::string name = folder.path().filename().string();
      if (!folder.is_directory() || !name.starts_with(kOwnPrefix)) continue;
      for (const auto& file : fs::directory_iterator(folder.path())) {
        const std::string place = InLibraries(name + "/" + file.path().filename().string());
        if (ElfImage::IsImage(file.path())) AddWithLibraries(files_, place, file.path(), "$ORIGIN/..");
      }
    }
  }

  /// The Python package around it, and where it finds others.
  void AddPackage() {
    for (const auto& entry : fs::recursive_directory_iterator(options_.package)) {
      const std::string place = entry.path().lexically_relative(options_.package).string();
      if (!entry.is_regular_file() || place.find("__pycache__") != place.npos) continue;
      if (ElfImage::IsImage(entry.path())) {
        AddWithLibraries(files_, place, entry.path(), "$ORIGIN/lib");
      } else {
        files_[place] = {entry.path(), ReadFile(entry.path())};
      }
    }
    files_[InLibraries(kPackagesFile)] = {{}, "../..\n"};
  }

  void CheckIsPortable(const Toolchain& toolchain) const {
    const std::string name = fmt::format("libcollage_{}_compiler.so", toolchain.name());
    std::error_code ignored;
    if (!own_.contains(name) || fs::exists(own_.at(name).parent_path() / kPortable / name, ignored)) return;
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("this Collage has no '{}/{}', the compiler linked with static libraries", kPortable, name),
                "", "build it: ninja portable_modules, then install again");
  }

  /// The files that `toolchain` adds to those that are planned.
  FileSet Gather(const Toolchain& toolchain) {
    FileSet files;
    for (const auto& [name, path] : own_) {
      if (IsModuleOf(name, toolchain.name())) AddModule(files, name, path);
    }
    if (is_package() && !IsAskedFor(toolchain)) return files;
    for (const BundledFile& file : BundledFilesOf(toolchain)) {
      const std::string place = InLibraries(file.name);
      if (StaysBehind(file.name, file.path)) continue;
      if (ElfImage::IsImage(file.path)) {
        AddWithLibraries(files, place, file.path, "$ORIGIN");
      } else if (!files_.contains(place)) {
        files[place] = {file.path, ReadFile(file.path)};
      }
    }
    return files;
  }

  BundledToolchain Decide(const Toolchain& toolchain) {
    if (toolchain.is_native()) CheckIsPortable(toolchain);
    BundledToolchain answer{toolchain.name()};
    const bool is_asked_for = IsAskedFor(toolchain);
    try {
      FileSet files = Gather(toolchain);
      answer.bytes = BytesOf(files);
      if (files.empty()) answer.reason = "it is not part of this Collage: " + toolchain.Probe().reason;
      if (answer.bytes > kSmallBytes && !is_asked_for) answer.reason = "large: --toolchains adds it";
      answer.is_included = answer.reason.empty();
      if (answer.is_included) files_.merge(files);
    } catch (const Error& error) {  // a library that is gone, for example
      if (is_asked_for) throw;
      answer.reason = error.what();
    }
    if (!answer.is_included && is_asked_for) {
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("toolchain '{}' cannot be bundled: {}", answer.name, answer.reason));
    }
    return answer;
  }

  /// Licences: Collage's, and those of files that came from elsewhere.
  void AddDocuments() {
    std::vector<fs::path> foreign;
    for (const auto& [place, file] : files_) {
      const bool is_own = file.from.filename().string().starts_with("libcollage") || file.from == options_.command ||
                          (is_package() && file.from.string().starts_with(options_.package)) ||
                          file.from.parent_path().filename().string().starts_with(kOwnPrefix) || file.from.empty();
      if (!is_own) foreign.push_back(file.from);
    }
    LicenceTexts texts = FindLicenceTexts(foreign);
    for (const auto& [package, of_package] : texts.by_package) {
      for (const fs::path& text : of_package) {
        files_[fmt::format("share/doc/{}/{}", package, text.filename().string())] = {text, ReadFile(text)};
      }
    }
    report_.without_licence = std::move(texts.without);
    for (const char* up : {"..", "../.."}) {  // libraries may be in lib/x86_64-linux-gnu
      const fs::path folder = libraries_ / up / kDocuments;
      std::error_code ignored;  // where libraries are elsewhere, this folder is not there
      for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
        if (!entry.is_regular_file()) continue;
        const std::string place = entry.path().lexically_relative(folder).string();
        files_[fmt::format("{}/{}", kDocuments, place)] = {entry.path(), ReadFile(entry.path())};
      }
    }
  }

  const BundleOptions& options_;
  fs::path libraries_;
  std::map<std::string, fs::path> own_;
  std::string interpreter_;
  std::map<std::string, std::string> names_of_copies_;  ///< by the libraries' names; empty without a package
  FileSet files_;
  BundleReport report_;
};

/// The place of `output` until it is whole.
fs::path PartOf(const fs::path& output) { return fmt::format("{}.{}.part", output.string(), getpid()); }

/// The kind that the name of `output` tells; null for a folder.
const ArchiveKind* ArchiveKindOf(const fs::path& output) {
  const auto kind =
      std::ranges::find_if(kArchives, [&](const ArchiveKind& one) { return output.string().ends_with(one.suffix); });
  return kind == kArchives.end() ? nullptr : &*kind;
}

/// Packs `folder`, in which all is that is to be packed, into `file`, the same bytes for the same files.
void Pack(const fs::path& folder, const fs::path& file, const ArchiveKind& kind) {
  const fs::path part = PartOf(file);
  const NotedTemporary noted(part);
  const ToolResult packed = RunTool({"tar", "--create", kind.option, "--file", part.string(), "--sort=name",
                                     "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--directory",
                                     folder.parent_path().string(), folder.filename().string()});
  std::error_code failed;
  if (packed.status == 0) fs::rename(part, file, failed);
  if (packed.status == 0 && !failed) return;
  const std::string reason = failed ? failed.message() : packed.output;
  fs::remove(part, failed);
  throw Error(ErrorCategory::kResource, fmt::format("cannot pack it with tar {}: {}", kind.option, reason),
              file.string());
}

BundleReport MakeArchive(Bundler& bundler, const fs::path& file, const ArchiveKind& kind) {
  CheckCanWrite(file);
  bundler.Plan();
  const TemporaryFolder folder;
  std::string name = file.filename().string();
  const fs::path tree = folder / name.substr(0, name.size() - kind.suffix.size());
  fs::create_directory(tree);
  BundleReport report = bundler.Write(tree);
  Pack(tree, file, kind);
  report.archive_bytes = static_cast<int64_t>(fs::file_size(file));
  return report;
}

BundleReport MakeFolder(Bundler& bundler, const fs::path& folder) {
  const fs::path part = PartOf(folder);
  const NotedTemporary noted(part);
  std::error_code failed;
  try {
    fs::create_directories(part);
    bundler.Plan();
    BundleReport report = bundler.Write(part);
    fs::rename(part, folder);  // also over an empty folder
    return report;
  } catch (...) {
    fs::remove_all(part, failed);
    throw;
  }
}

}  // namespace

BundleReport MakeBundle(const BundleOptions& options) {
  fs::path output = fs::absolute(options.output).lexically_normal();
  if (output.filename().empty()) output = output.parent_path();  // "folder/"
  const ArchiveKind* archive = ArchiveKindOf(output);
  if (output.filename().string().size() <= (archive == nullptr ? 0 : archive->suffix.size())) {
    throw Error(ErrorCategory::kInput, fmt::format("'{}' names no file and no folder", options.output), "OUTPUT");
  }
  std::error_code ignored;
  if (archive == nullptr && fs::exists(output, ignored) && !fs::is_empty(output, ignored)) {
    throw Error(ErrorCategory::kInput, "it is there already, and not an empty folder", output.string(),
                "name a folder that is to be made, or a file .tar.xz or .tar.gz");
  }
  if (const auto mark = FindBesideModules(kLeftOutFile)) {
    throw Error(ErrorCategory::kUnsupported, "this Collage is a bundle already", mark->parent_path().string(),
                "copy its folder; make another one with the Collage that made it");
  }
  BundleOptions chosen = options;
  if (!chosen.package.empty()) {
    chosen.package = fs::weakly_canonical(chosen.package, ignored).string();
    if (!fs::exists(fs::path(chosen.package) / "__init__.py", ignored)) {
      throw Error(ErrorCategory::kInput, "expected the folder of a Python package, with __init__.py", options.package,
                  "that of a build is build/dev/python/collage");
    }
  }
  AddBuiltins();
  try {
    Bundler bundler(chosen);
    return archive != nullptr ? MakeArchive(bundler, output, *archive) : MakeFolder(bundler, output);
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorCategory::kResource, error.code().message(), error.path1().string());
  }
}

}  // namespace collage
