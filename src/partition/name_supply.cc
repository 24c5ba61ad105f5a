// name_supply.cc: cleaning and counting.
#include "partition/name_supply.h"

#include <cctype>

namespace collage {

std::string NameSupply::Fresh(std::initializer_list<std::string_view> hints) {
  std::string name = prefix_;
  for (std::string_view hint : hints) {
    if (!hint.empty()) name += (name.empty() ? "" : "_") + std::string(hint);
  }
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "_" + name;
  // A numbered name may have been asked for by itself.
  std::string fresh = name;
  while (times_.contains(fresh)) fresh = name + "_" + std::to_string(times_[name]++);
  times_[fresh] = 1;
  return fresh;
}

}  // namespace collage
