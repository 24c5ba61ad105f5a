// calling.cc: a library of functions for Composites, which counts their calls: dense layers by a plan that is made when
// a kernel is loaded, convolutions of single pixels channels-last, and sums with a tensor.
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace {

std::atomic<int64_t> num_calls{0};

/// The rest of a dense layer, behind its product.
struct Plan {
  bool has_relu = false;
};

/// y = relu?(x w^T * scale + offset); `row` holds a row of the result on the way.
void Dense(const Plan* plan, const float* x, const float* w, float* y, float* row, int32_t m, int64_t n, int64_t k,
           float scale, double offset) {
  ++num_calls;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += x[i * k + p] * w[j * k + p];
      const float value = sum * scale + static_cast<float>(offset);
      row[j] = plan->has_relu && value < 0 ? 0 : value;
    }
    std::memcpy(y + i * n, row, static_cast<size_t>(n) * sizeof(float));
  }
}

/// Each of `pixels` points of `in` channels becomes one of `out`. Returns a status, as many libraries do.
int32_t Pointwise(const float* x, const float* w, float* y, int64_t pixels, int64_t in, int64_t out) {
  ++num_calls;
  for (int64_t i = 0; i < pixels; ++i) {
    for (int64_t j = 0; j < out; ++j) {
      float sum = 0;
      for (int64_t c = 0; c < in; ++c) sum += x[i * in + c] * w[j * in + c];
      y[i * out + j] = sum;
    }
  }
  return 0;
}

void AddTo(const float* x, const float* doubled, float* y, int64_t count) {
  ++num_calls;
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] + doubled[i] / 2;
}

const Plan* PlanFor(const std::string& request) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Plan>> plans;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Plan>& plan = plans[request];
  if (plan == nullptr) plan = std::make_unique<Plan>(Plan{request == "plan relu"});
  return plan.get();
}

}  // namespace

extern "C" void* collage_find_micro_kernel(const char* request) {
  const std::string text = request;
  if (text == "dense") return reinterpret_cast<void*>(&Dense);
  if (text == "pointwise") return reinterpret_cast<void*>(&Pointwise);
  if (text == "add_to") return reinterpret_cast<void*>(&AddTo);
  return text.starts_with("plan ") ? const_cast<Plan*>(PlanFor(text)) : nullptr;
}

extern "C" int64_t collage_num_calls() { return num_calls; }
