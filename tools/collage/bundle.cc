// bundle.cc: `collage bundle`: this Collage for machines where nothing is installed.
#include "bundle/bundle.h"

#include <fmt/format.h>

#include <filesystem>

#include "command.h"

namespace collage::cli {
namespace {

struct Arguments {
  BundleOptions options;
  std::string toolchains;
  bool json = false;
};

Fact ToolchainRow(const BundledToolchain& toolchain) {
  return Fact::Record(
      "", "",
      {Fact::Text("name", "toolchain", toolchain.name), Fact::Flag("included", "included", toolchain.is_included),
       Fact::Bytes("bytes", "size", toolchain.bytes), Fact::Text("reason", "why not", toolchain.reason)});
}

Fact BundleFacts(const BundleReport& report) {
  return Fact::Report(
      1,
      {Fact::Line("bundle",
                  {Fact::Text("output", "output", report.output), Fact::Bytes("tree_bytes", "files", report.tree_bytes),
                   Fact::Count("files", "files", report.num_files),
                   Fact::Integer("archive_bytes", "archive", report.archive_bytes, Unit::kBytes),
                   Fact::Text("libc", "C library", fmt::format("glibc {}.{}", report.libc.first, report.libc.second))})
           .Says("{output}: [{archive_bytes} of ]{tree_bytes} in {files} files · needs {libc} or newer"),
       TableOf("toolchains", "toolchains", report.toolchains, ToolchainRow)
           .Columns({{"toolchain", "{name}"},
                     {"included", "[{?included}yes][{!included}no]"},
                     {"size", "[{bytes}]"},
                     {"why not", "[{reason}]"}}),
       Fact::Texts("without_licence", "no licence text found for", report.without_licence).SeparatedBy(", "),
       Fact::Texts("left_to_packages", "other Python packages hold",
                   {report.left_to_packages.begin(), report.left_to_packages.end()})
           .SeparatedBy(", ")});
}

void Run(Arguments& arguments) {
  arguments.options.command = std::filesystem::read_symlink("/proc/self/exe").string();
  arguments.options.toolchains = SplitCommas(arguments.toolchains);
  PrintReport(BundleFacts(MakeBundle(arguments.options)), arguments.json);
}

}  // namespace

void AddBundleCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "bundle",
      "Copy this command, and all that it needs, into a folder or archive for machines with nothing but glibc");
  command
      ->add_option("output", arguments->options.output, "The folder to make; or an archive, FILE.tar.xz or FILE.tar.gz")
      ->required();
  command->add_option("--toolchains", arguments->toolchains,
                      "Toolchains to take along, separated by commas, beside those that are small");
  command->add_option(
      "--package", arguments->options.package,
      "The folder of the built Python package: make a folder that holds it with all that it needs, as a "
      "wheel does");
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  command->footer(
      "Examples:\n"
      "  collage bundle collage.tar.xz                        native kernels and small toolchains\n"
      "  collage bundle /srv/collage --toolchains NAME,NAME   a folder, with large toolchains, too");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
