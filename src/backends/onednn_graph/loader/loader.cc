// loader.cc: the module that the runtime opens for kernels of oneDNN's graph API. oneDNN computes with OpenMP; before
// it is loaded, OpenMP is put on the process's own thread pool, so that no second team of spinning threads competes
// with it.
#include "backends/onednn_graph/query.h"
#include "collage/runtime/kernel.h"
#include "runtime/threads/shared_gomp.h"
#include "support/dynamic_library.h"

namespace collage::onednn_graph {
namespace {

template <typename Function>
Function* OpenImplementation(const char* symbol) {
  UseSharedGomp();
  return reinterpret_cast<Function*>(FindModuleSymbol("libcollage_rt_onednn_graph_impl.so", symbol));
}

}  // namespace
}  // namespace collage::onednn_graph

extern "C" collage::KernelLoader* collage_make_kernel_loader() {
  return collage::onednn_graph::OpenImplementation<collage::MakeKernelLoaderFn>("collage_onednn_graph_make_loader")();
}

extern "C" collage::Result<collage::onednn_graph::Implementation> collage_onednn_graph_query(
    const collage::onednn_graph::GraphSpec& spec, int num_threads) {
  using namespace collage::onednn_graph;
  static QueryFn* const query = OpenImplementation<QueryFn>("collage_onednn_graph_query_implementation");
  return query(spec, num_threads);
}

extern "C" std::vector<std::vector<int>> collage_onednn_graph_partitions(const collage::onednn_graph::GraphSpec& spec) {
  using namespace collage::onednn_graph;
  static PartitionsFn* const find = OpenImplementation<PartitionsFn>("collage_onednn_graph_find_partitions");
  return find(spec);
}
