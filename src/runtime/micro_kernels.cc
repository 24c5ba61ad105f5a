// micro_kernels.cc: see micro_kernels.h.
#include "collage/runtime/micro_kernels.h"

#include <fmt/format.h>

#include <sstream>

#include "collage/support/error.h"
#include "support/dynamic_library.h"

namespace collage {

std::string TileProduct::ToString() const {
  return fmt::format("product {} m={} n={} k={} lda={} ldb={} ldc={} beta={} ta={}", dtype.ToString(), m, n, k, lda,
                     ldb, ldc, adds ? 1 : 0, transposes_a ? 1 : 0);
}

TileProduct TileProduct::Parse(std::string_view text) {
  TileProduct tile;
  int64_t beta = 0, ta = 0;
  const std::pair<std::string_view, int64_t*> numbers[] = {
      {"m=", &tile.m},     {"n=", &tile.n},     {"k=", &tile.k},  {"lda=", &tile.lda},
      {"ldb=", &tile.ldb}, {"ldc=", &tile.ldc}, {"beta=", &beta}, {"ta=", &ta}};
  std::istringstream words{std::string(text)};
  std::string what, dtype;
  bool is_read = words >> what >> dtype && what == "product" && DataType::IsName(dtype);
  for (const auto& [name, number] : numbers) {
    std::string word;
    is_read = is_read && words >> word && word.starts_with(name);
    if (is_read) is_read = static_cast<bool>(std::istringstream(word.substr(name.size())) >> *number);
  }
  if (!is_read) throw Error(ErrorCategory::kCorrupt, fmt::format("'{}' is no product of tiles", text));
  tile.dtype = DataType::FromString(dtype);
  tile.adds = beta != 0;
  tile.transposes_a = ta != 0;
  return tile;
}

void* FindMicroKernel(const std::string& library, const std::string& request) {
  void* symbol = FindModuleSymbol("libcollage_rt_" + library + ".so", "collage_find_micro_kernel");
  return reinterpret_cast<FindMicroKernelFn*>(symbol)(request.c_str());
}

}  // namespace collage
