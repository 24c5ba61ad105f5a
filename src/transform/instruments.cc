// instruments.cc: timing passes and printing what they made.
#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/text.h"
#include "collage/transform/pass.h"

namespace collage {

bool PassInstrument::ShouldRun(const Pass&, const IRModule&) { return true; }
void PassInstrument::Before(const Pass&, const IRModule&) {}
void PassInstrument::After(const Pass&, const IRModule&) {}

void TimingInstrument::Before(const Pass&, const IRModule&) { started_.push_back(std::chrono::steady_clock::now()); }

void TimingInstrument::After(const Pass& pass, const IRModule&) {
  const auto elapsed = std::chrono::steady_clock::now() - started_.back();
  started_.pop_back();
  auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& other) { return other.pass == pass.name; });
  if (row == rows_.end()) row = rows_.insert(row, Row{pass.name});
  ++row->runs;
  row->total += std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed);
}

std::string TimingInstrument::ToText() const {
  std::string text;
  for (const Row& row : rows_) {
    text += fmt::format("{:>10.3f} ms {:>3}x  {}\n", static_cast<double>(row.total.count()) * 1e-6, row.runs, row.pass);
  }
  return text;
}

bool PrintIrInstrument::Wants(const Pass& pass) const {
  return passes_.empty() || std::find(passes_.begin(), passes_.end(), pass.name) != passes_.end();
}

void PrintIrInstrument::Print(const char* when, const Pass& pass, const IRModule& module) {
  out_ << "// " << when << " " << pass.name << "\n" << PrintModule(module, {.metadata = false}) << "\n";
}

void PrintIrInstrument::Before(const Pass& pass, const IRModule& module) {
  if (when_ == When::kBefore && Wants(pass)) Print("before", pass, module);
}

void PrintIrInstrument::After(const Pass& pass, const IRModule& module) {
  if (when_ == When::kAfter && Wants(pass)) Print("after", pass, module);
}

}  // namespace collage
