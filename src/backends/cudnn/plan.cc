// plan.cc: a blob is a length, that many bytes of JSON, and the library's text.
#include "backends/cudnn/plan.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "backends/cuda_driver/blob.h"
#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage::cudnn {

constexpr std::array<const char*, 6> NamesOf(Source) {
  return {"inside", "input", "constant", "result", "number", "scratch"};
}

template <typename Self, typename Visitor>
requires IsMessage<Self, PlanOperand>
void VisitFields(Self& operand, Visitor& visit) {
  visit.Field("id", operand.id);
  visit.Field("source", operand.source);
  visit.Field("number", operand.number);
  visit.Field("value", operand.value);
}

namespace {

/// The JSON of a blob.
struct Header {
  std::string architecture;
  std::string library;
  std::vector<PlanOperand> operands;
  int64_t workspace_bytes = 0;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, Header>
void VisitFields(Self& header, Visitor& visit) {
  visit.Field("architecture", header.architecture);
  visit.Field("library", header.library);
  visit.Field("operands", header.operands);
  visit.Field("workspace_bytes", header.workspace_bytes);
}

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel's plan cannot be read", "cudnn"); }

Header HeaderFrom(std::string_view text) {
  try {
    Header header;
    FromJson(nlohmann::json::parse(text), header);
    return header;
  } catch (const nlohmann::json::exception&) {
    Fail();
  } catch (const Error&) {
    Fail();
  }
}

}  // namespace

std::vector<std::byte> ToBlob(const Plan& plan) {
  const std::string header =
      ToJson(Header{plan.architecture, plan.library, plan.operands, plan.workspace_bytes}).dump();
  return cuda_driver::JoinBlob(header, std::as_bytes(std::span(plan.text)));
}

Plan PlanFrom(std::span<const std::byte> blob) {
  const auto parts = cuda_driver::SplitBlob(blob);
  if (!parts) Fail();
  Header header = HeaderFrom(parts->text);
  for (const PlanOperand& operand : header.operands) {
    if (operand.source == Source::kInside || operand.number < 0) Fail();
    if (operand.source == Source::kScratch && operand.number >= header.workspace_bytes) Fail();
  }
  if (header.workspace_bytes < 0) Fail();
  return {std::move(header.architecture), std::move(header.library), std::move(header.operands), header.workspace_bytes,
          std::string(reinterpret_cast<const char*>(parts->rest.data()), parts->rest.size())};
}

}  // namespace collage::cudnn
