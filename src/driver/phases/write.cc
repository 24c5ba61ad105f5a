// write.cc: last phase: files.
#include "collage/ir/text.h"
#include "driver/compilation.h"
#include "driver/dump.h"
#include "driver/write_executable.h"
#include "support/file.h"
#include "support/stopwatch.h"

namespace collage {

void Compilation::Write(PlayOffResult& result, const ContenderModule& winner) {
  if (options_.progress != nullptr) options_.progress->PlayOff(0, 0, "write");
  {
    const Stopwatch play_off(report_.play_off_seconds);
    const Stopwatch writing(report_.play_off_parts.write);
    report_.output_bytes = WriteExecutable(
        options_.output, [&](const std::filesystem::path& file) { return result.executable->SerialiseTo(file); },
        [&](const std::filesystem::path& file) {
          report_.output_bytes = static_cast<int64_t>(std::filesystem::file_size(file));
          if (options_.on_written) options_.on_written(report_, file);
        });
    result.executable.reset();  // with its worker
  }
  if (!options_.write_partitioning.empty()) WriteWhole(options_.write_partitioning, winner.partitioning);
  if (!options_.write_module.empty()) WriteWhole(options_.write_module, PrintModule(winner.module));
  if (!options_.dump.empty()) {
    Phase("dump");
    DumpPartitions(winner.module, report_.num_threads, PlayOffSettings().limits, options_.dump, compiled_.get());
  }
}

}  // namespace collage
