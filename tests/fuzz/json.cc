// json.cc: the first byte says which kind of document the others are.
#include "fuzz/target.h"
#include "property/json_documents.h"

namespace collage::fuzz {

void ReadJson(const std::string& given) {
  static const std::vector<JsonKind> kinds = AllJsonKinds();
  std::string bytes = given;
  kinds[static_cast<size_t>(TakeNumber(bytes)) % kinds.size()].read(bytes);
}

}  // namespace collage::fuzz
