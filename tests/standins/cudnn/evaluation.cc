// evaluation.cc: each operation by the loops of its definition, in float32 or wider. Elements lie in the order of their
// dimensions meanwhile, and are rounded where they are stored.
#include "evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "../numbers.h"
#include "support/numbers.h"

namespace standin::cudnn {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr int kHalf = 2, kBFloat16 = 9;

float Load(const std::byte* place, int type) {
  uint16_t half = 0;
  float whole = 0;
  if (type == 0) {
    std::memcpy(&whole, place, sizeof whole);
    return whole;
  }
  std::memcpy(&half, place, sizeof half);
  return type == kHalf ? collage::HalfToFloat(half) : collage::BFloat16ToFloat(half);
}

void Store(std::byte* place, int type, float value) {
  if (type == 0) {
    std::memcpy(place, &value, sizeof value);
    return;
  }
  const uint16_t half = type == kBFloat16 ? collage::FloatToBFloat16(value) : collage::FloatToHalf(value);
  std::memcpy(place, &half, sizeof half);
}

int64_t Count(const Ints& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  return count;
}

/// Calls `visit` with each index, the last dimension fastest.
template <typename Visit>
void ForEach(const Ints& dims, Visit visit) {
  Ints index(dims.size(), 0);
  for (int64_t left = Count(dims); left > 0; --left) {
    visit(index);
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
}

/// The place of an element; dimensions of size 1 are read again for each index.
int64_t Place(const Ints& dims, const Ints& index) {
  int64_t place = 0;
  for (size_t d = 0; d < dims.size(); ++d) place = place * dims[d] + (dims[d] == 1 ? 0 : index[d]);
  return place;
}

class Evaluation {
 public:
  Evaluation(const Program& program, const std::map<int64_t, std::byte*>& places)
      : program_(program), places_(places) {}

  void Run() {
    for (const Operation& operation : program_.operations) {
      operation_ = &operation;
      switch (operation.kind) {
        case 10: Convolve(704, 703, 705, /*is_gradient=*/false); break;
        case 12: Convolve(710, 709, 711, /*is_gradient=*/true); break;
        case 13: Apply(); break;
        case 19: Multiply(); break;
        case 22: Reduce(); break;
        case 25: Pool(); break;
        case 29: Normalise(); break;
        case 41: Attend(); break;
        default: throw std::logic_error("the stand-in has no operation " + std::to_string(operation.kind));
      }
    }
  }

 private:
  bool Has(int attribute) const { return operation_->tensors.contains(attribute); }
  const Tensor& TensorOf(int attribute) const { return program_.tensor(operation_->tensors.at(attribute)); }
  const Ints& Dims(int attribute) const { return TensorOf(attribute).dims; }
  double Number(int attribute, size_t at, double otherwise = 0) const {
    const auto found = operation_->numbers.find(attribute);
    return found == operation_->numbers.end() ? otherwise : found->second.at(at);
  }

  Floats Read(int attribute, bool is_factor = false) {
    const Tensor& tensor = TensorOf(attribute);
    Floats values;
    if (tensor.is_virtual) {
      values = inside_.at(tensor.id);
    } else {
      const std::byte* first = places_.at(tensor.id);
      ForEach(tensor.dims, [&](const Ints& index) {
        int64_t at = 0;
        for (size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
        values.push_back(Load(first + at * static_cast<int64_t>(tensor.element_bytes()), tensor.type));
      });
    }
    if (is_factor && program_.rounds_factors) {
      for (float& value : values) value = RoundToTf32(value);
    }
    return values;
  }

  void Write(int attribute, Floats values) {
    const Tensor& tensor = TensorOf(attribute);
    if (tensor.is_virtual) {
      inside_[tensor.id] = std::move(values);
      return;
    }
    std::byte* first = places_.at(tensor.id);
    size_t next = 0;
    ForEach(tensor.dims, [&](const Ints& index) {
      int64_t at = 0;
      for (size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
      Store(first + at * static_cast<int64_t>(tensor.element_bytes()), tensor.type, values[next++]);
    });
  }

  /// y = x * w; as a gradient, x from y.
  void Convolve(int x_name, int w_name, int y_name, bool is_gradient) {
    const Ints &x_dims = Dims(x_name), &w_dims = Dims(w_name), &y_dims = Dims(y_name);
    const Floats w = Read(w_name, /*is_factor=*/true), from = Read(is_gradient ? y_name : x_name, /*is_factor=*/true);
    std::vector<double> to(static_cast<size_t>(Count(is_gradient ? x_dims : y_dims)), 0);
    const int64_t of_group = y_dims[1] / (x_dims[1] / w_dims[1]);
    Ints window(w_dims.begin() + 1, w_dims.end()), strides, dilation, before;
    for (size_t d = 0; d + 2 < x_dims.size(); ++d) {
      strides.push_back(static_cast<int64_t>(Number(103, d)));
      dilation.push_back(static_cast<int64_t>(Number(102, d)));
      before.push_back(static_cast<int64_t>(Number(105, d)));
    }
    Ints x(x_dims.size()), weight(w_dims.size());
    ForEach(y_dims, [&](const Ints& y) {
      const auto y_place = static_cast<size_t>(Place(y_dims, y));
      ForEach(window, [&](const Ints& in_window) {
        x[0] = y[0];
        x[1] = y[1] / of_group * w_dims[1] + in_window[0];
        weight[0] = y[1];
        weight[1] = in_window[0];
        for (size_t d = 0; d + 2 < x.size(); ++d) {
          weight[d + 2] = in_window[d + 1];
          x[d + 2] = y[d + 2] * strides[d] - before[d] + in_window[d + 1] * dilation[d];
          if (x[d + 2] < 0 || x[d + 2] >= x_dims[d + 2]) return;
        }
        const auto x_place = static_cast<size_t>(Place(x_dims, x));
        const double factor = w[static_cast<size_t>(Place(w_dims, weight))];
        to[is_gradient ? x_place : y_place] += factor * from[is_gradient ? y_place : x_place];
      });
    });
    Write(is_gradient ? x_name : y_name, Floats(to.begin(), to.end()));
  }

  double Function(double x) const {
    constexpr int kExp = 13, kLog = 15;
    constexpr int kRelu = 100, kTanh = 101, kSigmoid = 102, kElu = 103, kGelu = 104, kSwish = 106, kGeluTanh = 107;
    switch (static_cast<int>(Number(0, 0))) {
      case kRelu: {
        const double low = Number(3, 0), high = Number(4, 0, INFINITY);
        return x < low ? low + Number(5, 0) * (x - low) : std::min(x, high);
      }
      case kExp: return std::exp(x);
      case kLog: return std::log(x);
      case kTanh: return std::tanh(x);
      case kSigmoid: return 1 / (1 + std::exp(-x));
      case kElu: return x > 0 ? x : Number(6, 0, 1) * std::expm1(x);
      case kGelu: return x * (1 + std::erf(x * std::sqrt(0.5))) / 2;
      case kSwish: return x / (1 + std::exp(-Number(8, 0, 1) * x));
      case kGeluTanh: return x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))) / 2;
      default: throw std::logic_error("the stand-in has no such function");
    }
  }

  double Function(double x, double b) const {
    constexpr int kAdd = 0, kMultiply = 1, kDivide = 6, kSubtract = 9;
    switch (static_cast<int>(Number(0, 0))) {
      case kAdd: return x + b;
      case kMultiply: return x * b;
      case kDivide: return x / b;
      case kSubtract: return x - b;
      default: throw std::logic_error("the stand-in has no such function of two values");
    }
  }

  void Apply() {
    Floats x = Read(751);
    if (!Has(752)) {
      for (float& value : x) value = static_cast<float>(Function(value));
      return Write(753, std::move(x));
    }
    const Floats b = Read(752);
    size_t next = 0;
    ForEach(Dims(751), [&](const Ints& index) {
      float& value = x[next++];
      value = static_cast<float>(Function(value, b[static_cast<size_t>(Place(Dims(752), index))]));
    });
    Write(753, std::move(x));
  }

  void Multiply() {
    const Ints &a_dims = Dims(1520), &b_dims = Dims(1521), &c_dims = Dims(1522);
    const Floats a = Read(1520, /*is_factor=*/true), b = Read(1521, /*is_factor=*/true);
    const size_t rank = c_dims.size();
    Floats c;
    ForEach(c_dims, [&](const Ints& index) {
      double sum = 0;
      Ints left = index, right = index;
      for (int64_t k = 0; k < a_dims.back(); ++k) {
        left[rank - 1] = right[rank - 2] = k;
        sum += static_cast<double>(a[static_cast<size_t>(Place(a_dims, left))]) *
               b[static_cast<size_t>(Place(b_dims, right))];
      }
      c.push_back(static_cast<float>(sum));
    });
    Write(1522, std::move(c));
  }

  void Reduce() {
    constexpr int kAdd = 0, kMaximum = 3;
    const int mode = static_cast<int>(Number(1600, 0));
    if (mode != kAdd && mode != kMaximum) throw std::logic_error("the stand-in has no such reduction");
    const Floats x = Read(1610);
    std::vector<double> y(static_cast<size_t>(Count(Dims(1611))), mode == kAdd ? 0 : -INFINITY);
    size_t next = 0;
    ForEach(Dims(1610), [&](const Ints& index) {
      double& to = y[static_cast<size_t>(Place(Dims(1611), index))];
      const double value = x[next++];
      to = mode == kAdd ? to + value : std::max(to, value);
    });
    Write(1611, Floats(y.begin(), y.end()));
  }

  void Pool() {
    constexpr int kMaximum = 3, kWithPadding = 2;
    const int mode = static_cast<int>(Number(1700, 0));
    const Ints& dims = Dims(1710);
    const Floats x = Read(1710);
    Ints window;
    // Numbers of windows are fractions.
    for (size_t d = 0; d + 2 < dims.size(); ++d) window.push_back(static_cast<int64_t>(Number(1706, 2 * d)));
    Floats y;
    ForEach(Dims(1711), [&](const Ints& index) {
      double sum = 0, most = -INFINITY;
      int64_t count = 0;
      ForEach(window, [&](const Ints& in_window) {
        Ints at = index;
        for (size_t d = 0; d < window.size(); ++d) {
          at[d + 2] = index[d + 2] * static_cast<int64_t>(Number(1705, 2 * d)) -
                      static_cast<int64_t>(Number(1704, 2 * d)) + in_window[d];
          if (at[d + 2] < 0 || at[d + 2] >= dims[d + 2]) return;
        }
        const float value = x[static_cast<size_t>(Place(dims, at))];
        sum += value;
        most = std::isnan(value) ? value : std::max<double>(most, value);
        ++count;
      });
      if (mode == kWithPadding) count = Count(window);
      y.push_back(static_cast<float>(mode == kMaximum ? most : sum / static_cast<double>(count)));
    });
    Write(1711, std::move(y));
  }

  /// Each of axis 0 by itself, or each channel of it. Scales and shifts are read again where they have dimensions of 1.
  void Normalise() {
    constexpr int kInstanceNorm = 1;
    Floats x = Read(2002);
    const Floats scale = Read(2005), bias = Read(2006), epsilon = Read(2007);
    const Ints& dims = Dims(2002);
    const int64_t rows = Number(2000, 0) == kInstanceNorm ? dims[0] * dims[1] : dims[0];
    const size_t size = x.size() / static_cast<size_t>(rows);
    std::vector<size_t> of;  // each element's scale
    ForEach(dims, [&](const Ints& index) {
      Ints at = index;
      at[0] = 0;
      of.push_back(static_cast<size_t>(Place(Dims(2005), at)));
    });
    for (size_t row = 0; row < x.size(); row += size) {
      double mean = 0, variance = 0;
      for (size_t i = 0; i < size; ++i) mean += x[row + i] / static_cast<double>(size);
      for (size_t i = 0; i < size; ++i) variance += std::pow(x[row + i] - mean, 2) / static_cast<double>(size);
      for (size_t i = 0; i < size; ++i) {
        x[row + i] = static_cast<float>((x[row + i] - mean) / std::sqrt(variance + epsilon[0]) * scale[of[row + i]] +
                                        bias[of[row + i]]);
      }
    }
    Write(2013, std::move(x));
  }

  void Attend() {
    const Ints &q_dims = Dims(2800), &k_dims = Dims(2801), &v_dims = Dims(2802);
    const Floats q = Read(2800, /*is_factor=*/true), k = Read(2801, /*is_factor=*/true), v = Read(2802, true);
    const double scale = Has(2805) ? Read(2805).front() : 1;
    const auto length = static_cast<size_t>(k_dims[2]), depth = static_cast<size_t>(q_dims[3]);
    const auto width = static_cast<size_t>(v_dims[3]), rows = static_cast<size_t>(q_dims[2]);
    Floats o;
    for (size_t row = 0; row < q.size() / depth; ++row) {
      const float* keys = k.data() + row / rows * length * depth;
      const float* values = v.data() + row / rows * length * width;
      std::vector<double> scores(length, 0);
      for (size_t i = 0; i < length; ++i) {
        for (size_t d = 0; d < depth; ++d) scores[i] += scale * q[row * depth + d] * keys[i * depth + d];
      }
      const double most = *std::ranges::max_element(scores);
      double sum = 0;
      for (double& score : scores) sum += score = std::exp(score - most);
      for (size_t d = 0; d < width; ++d) {
        double value = 0;
        for (size_t i = 0; i < length; ++i) value += scores[i] / sum * values[i * width + d];
        o.push_back(static_cast<float>(value));
      }
    }
    Write(2803, std::move(o));
  }

  const Program& program_;
  const std::map<int64_t, std::byte*>& places_;
  std::map<int64_t, Floats> inside_;
  const Operation* operation_ = nullptr;
};

}  // namespace

size_t Tensor::bytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return static_cast<size_t>(last + 1) * element_bytes();
}

const Tensor& Program::tensor(int64_t id) const {
  return *std::ranges::find_if(tensors, [&](const Tensor& one) { return one.id == id; });
}

void Evaluate(const Program& program, const std::map<int64_t, std::byte*>& places) {
  Evaluation(program, places).Run();
}

}  // namespace standin::cudnn
