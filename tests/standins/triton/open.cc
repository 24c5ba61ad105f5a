// open.cc: programs of a kernel of Triton, one after the other. Assumptions about the real ones:
//
//   - Operations of Triton's intermediate representation mean what its documentation says. Sums of products are float32
//     (here wider), or int32; tf32x3 leaves out the product of what TF32 rounds away from both factors.
//   - Parameters are the addresses of the function's arguments, and two of scratch memory behind them, which may be 0.
//   - A program is a block of as many warps as it was compiled for; programs are in no order.
//   - Masked accesses touch nothing where the mask is false; all others are within an allocation.
//
// How Triton makes machine code of it is not tested: docs/gpus.md has the list of assumptions.
#include "open.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "../numbers.h"
#include "support/numbers.h"
#include "tile.h"

namespace standin {
namespace {

using namespace ttir;  // NOLINT: this file is about nothing else

constexpr std::string_view kBegin = "// kernel of Triton\n";
/// Addresses of scratch memory behind the arguments.
constexpr size_t kHidden = 2;

/// One launch.
class Launch {
 public:
  Launch(const Function& function, const FindMemory& find) : function_(function), find_(find) {}

  void Run(const Grid& grid, const std::vector<uint64_t>& addresses) {
    for (uint32_t y = 0; y < grid.rows; ++y) {
      for (uint32_t x = 0; x < grid.blocks; ++x) {
        program_[0] = x;
        program_[1] = y;
        values_.assign(static_cast<size_t>(function_.num_values), nullptr);
        for (size_t i = 0; i < function_.arguments.size(); ++i) {
          Tile address = MakeTile(function_.arguments[i].type);
          address.integers[0] = static_cast<int64_t>(addresses[i]);
          Set(function_.arguments[i].value, std::move(address));
        }
        Evaluate(function_.body);
        written_.insert(written_now_.begin(), written_now_.end());
        written_now_.clear();
      }
    }
  }

 private:
  const TilePtr& Get(int value) const {
    const TilePtr& tile = values_.at(static_cast<size_t>(value));
    if (tile == nullptr) throw Failure("a value is used before it is computed");
    return tile;
  }
  void Set(int value, Tile tile) {
    values_.at(static_cast<size_t>(value)) = std::make_shared<const Tile>(std::move(tile));
  }

  /// Returns what the block's last operation hands on.
  std::vector<TilePtr> Evaluate(const Block& block) {
    for (const Operation& operation : block.operations) {
      std::vector<TilePtr> operands;
      for (const int operand : operation.operands) operands.push_back(Get(operand));
      if (operation.name == "scf.yield" || operation.name == "tt.reduce.return") return operands;
      if (operation.name == "tt.return") return {};
      if (operation.name == "scf.for") {
        EvaluateLoop(operation, operands);
      } else if (operation.name == "tt.store") {
        Store(operands);
      } else {
        Set(operation.results.at(0), EvaluateOne(operation, operands));
      }
    }
    return {};
  }

  void EvaluateLoop(const Operation& loop, const std::vector<TilePtr>& operands) {
    const int64_t begin = operands[0]->integers[0], end = operands[1]->integers[0], step = operands[2]->integers[0];
    if (step < 1) throw Failure("a loop does not end");
    std::vector<TilePtr> carried(operands.begin() + 3, operands.end());
    for (int64_t i = begin; i < end; i += step) {
      Tile index = MakeTile(operands[0]->type);
      index.integers[0] = i;
      Set(loop.body.arguments[0], std::move(index));
      for (size_t j = 0; j < carried.size(); ++j) values_[static_cast<size_t>(loop.body.arguments[j + 1])] = carried[j];
      carried = Evaluate(loop.body);
    }
    for (size_t j = 0; j < loop.results.size(); ++j) values_[static_cast<size_t>(loop.results[j])] = carried.at(j);
  }

  Tile EvaluateOne(const Operation& operation, const std::vector<TilePtr>& operands) {
    const std::string& name = operation.name;
    const Type& type = operation.type;
    if (name == "arith.constant") return ConstantOf(operation.text, type);
    if (name == "tt.get_program_id") {
      Tile number = MakeTile(type);
      number.integers[0] = program_[operation.text.find('y') == std::string::npos ? 0 : 1];
      return number;
    }
    if (name == "tt.make_range") return Range(operation);
    if (name == "tt.splat") return Gather(*operands.at(0), type.shape, [](int64_t) { return 0; });
    if (name == "tt.expand_dims") return Gather(*operands.at(0), type.shape, [](int64_t i) { return i; });
    if (name == "tt.broadcast") return Broadcast(*operands.at(0), type.shape);
    if (name == "tt.addptr") return Move(*operands.at(0), *operands.at(1));
    if (name == "tt.load") return Load(operands);
    if (name == "tt.dot") return Multiply(operation, operands);
    if (name == "tt.reduce") return Reduce(operation, *operands.at(0));
    return Compute(operation, operands);
  }

  static Tile Range(const Operation& operation) {
    Tile range = MakeTile(operation.type);
    const int64_t begin = std::atoll(WordBehind(operation.text, "start = ").c_str());
    for (size_t i = 0; i < range.size(); ++i) range.integers[i] = begin + static_cast<int64_t>(i);
    return range;
  }

  static Tile Broadcast(const Tile& tile, const std::vector<int64_t>& shape) {
    const std::vector<int64_t>& own = tile.type.shape;
    if (shape.size() > 2) throw Failure("broadcasts tensors of more than two dimensions");
    if (shape.size() < 2) return Gather(tile, shape, [&](int64_t i) { return own[0] == 1 ? 0 : i; });
    const int64_t columns = shape[1], of_row = own[0] == 1 ? 0 : own[1], of_column = own[1] == 1 ? 0 : 1;
    return Gather(tile, shape, [=](int64_t i) { return i / columns * of_row + i % columns * of_column; });
  }

  static Tile Move(const Tile& address, const Tile& distance) {
    Tile made = address;
    const auto bytes = static_cast<int64_t>(BytesOf(address.type.pointee));
    for (size_t i = 0; i < made.size(); ++i) made.integers[i] += distance.integers[i] * bytes;
    return made;
  }

  /// The sum of c and the products of rows of a and columns of b.
  static Tile Multiply(const Operation& operation, const std::vector<TilePtr>& operands) {
    const Tile &a = *operands.at(0), &b = *operands.at(1);
    Tile sum = *operands.at(2);
    const int64_t m = a.type.shape[0], k = a.type.shape[1], n = b.type.shape[1];
    const bool is_float = IsFloat(a.type.element);
    const std::string precision = WordBehind(operation.text, "inputPrecision = ");
    const bool is_rounded = a.type.element == Element::kFloat32 && precision.starts_with("tf32");
    const bool in_three = precision == "tf32x3";
    std::vector<double> totals(static_cast<size_t>(n));
    std::vector<int64_t> wholes(static_cast<size_t>(n));
    for (int64_t row = 0; row < m; ++row) {
      std::ranges::fill(totals, 0);
      std::ranges::fill(wholes, 0);
      for (int64_t i = 0; i < k; ++i) {
        const auto in_a = static_cast<size_t>(row * k + i), in_b = static_cast<size_t>(i * n);
        for (size_t column = 0; column < totals.size(); ++column) {
          if (!is_float) {
            wholes[column] += a.integers[in_a] * b.integers[in_b + column];
          } else if (is_rounded) {
            totals[column] += MultiplyInTf32(a.floats[in_a], b.floats[in_b + column], in_three);
          } else {
            totals[column] += double{a.floats[in_a]} * b.floats[in_b + column];
          }
        }
      }
      for (size_t column = 0; column < totals.size(); ++column) {
        const size_t at = static_cast<size_t>(row * n) + column;
        if (is_float) {
          sum.floats[at] = static_cast<float>(sum.floats[at] + totals[column]);
        } else {
          sum.integers[at] = Wrapped(sum.integers[at] + wholes[column], sum.type.element);
        }
      }
    }
    return sum;
  }

  /// Combines slices along the axis, whole ones: what combines two numbers does so for each element of two tiles.
  Tile Reduce(const Operation& operation, const Tile& tile) {
    const auto axis = static_cast<size_t>(std::atoi(WordBehind(operation.text, "axis = ").c_str()));
    std::vector<int64_t> shape = tile.type.shape;
    const int64_t size = shape.at(axis);
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    TilePtr total;
    for (int64_t j = 0; j < size; ++j) {
      auto slice = std::make_shared<const Tile>(
          Gather(tile, shape, [&](int64_t i) { return (i / inner * size + j) * inner + i % inner; }));
      if (total == nullptr) {
        total = slice;
        continue;
      }
      values_[static_cast<size_t>(operation.body.arguments.at(0))] = total;
      values_[static_cast<size_t>(operation.body.arguments.at(1))] = slice;
      total = Evaluate(operation.body).at(0);
    }
    return *total;
  }

  /// The bytes at each address that is accessed; null where the mask says no.
  std::vector<std::byte*> Find(const Tile& addresses, const Tile* mask, const char* doing) {
    const size_t bytes = BytesOf(addresses.type.pointee);
    const auto is_there = [&](size_t i) { return mask == nullptr || mask->integers[i] != 0; };
    std::vector<std::byte*> places(addresses.size(), nullptr);
    std::optional<uint64_t> first, last;
    for (size_t i = 0; i < places.size(); ++i) {
      if (!is_there(i)) continue;
      const auto address = static_cast<uint64_t>(addresses.integers[i]);
      first = std::min(first.value_or(address), address);
      last = std::max(last.value_or(address), address);
    }
    if (!first) return places;
    std::byte* const all = find_(*first, *last - *first + bytes);
    for (size_t i = 0; i < places.size(); ++i) {
      if (!is_there(i)) continue;
      const auto address = static_cast<uint64_t>(addresses.integers[i]);
      places[i] = all != nullptr ? all + (address - *first) : find_(address, bytes);
      const std::string where = " element " + std::to_string(i) + " of " + std::to_string(places.size());
      if (places[i] == nullptr) throw Failure(doing + where + " outside of the device's memory");
      if (address % bytes != 0) throw Failure(doing + where + " at a misaligned address");
    }
    return places;
  }

  Tile Load(const std::vector<TilePtr>& operands) {
    const Tile& addresses = *operands.at(0);
    const std::vector<std::byte*> places = Find(addresses, operands.size() > 1 ? operands[1].get() : nullptr, "reads");
    const Element element = addresses.type.pointee;
    // Nothing is known of what is not there.
    Tile made = operands.size() > 2 ? *operands[2] : MakeTile({element, {}, addresses.type.shape});
    if (operands.size() == 2) {
      std::ranges::fill(made.floats, std::bit_cast<float>(0x7FFFFFFF));
      std::ranges::fill(made.integers, -1);
    }
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == nullptr) continue;
      int64_t bits = 0;
      std::memcpy(&bits, places[i], BytesOf(element));
      if (element == Element::kFloat32)
        made.floats[i] = std::bit_cast<float>(static_cast<uint32_t>(bits));
      else if (element == Element::kFloat16)
        made.floats[i] = collage::HalfToFloat(static_cast<uint16_t>(bits));
      else if (element == Element::kBFloat16)
        made.floats[i] = collage::BFloat16ToFloat(static_cast<uint16_t>(bits));
      else
        made.integers[i] = Wrapped(bits, element);
    }
    return made;
  }

  /// No element is written by two programs, since nothing orders these.
  void Store(const std::vector<TilePtr>& operands) {
    const Tile &addresses = *operands.at(0), &values = *operands.at(1);
    const std::vector<std::byte*> places = Find(addresses, operands.size() > 2 ? operands[2].get() : nullptr, "writes");
    const Element element = addresses.type.pointee;
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] == nullptr) continue;
      if (written_.contains(addresses.integers[i])) throw Failure("writes an element that another program writes");
      written_now_.insert(addresses.integers[i]);
      int64_t bits = 0;
      if (element == Element::kFloat32)
        bits = std::bit_cast<uint32_t>(values.floats[i]);
      else if (element == Element::kFloat16)
        bits = collage::FloatToHalf(values.floats[i]);
      else if (element == Element::kBFloat16)
        bits = collage::FloatToBFloat16(values.floats[i]);
      else
        bits = values.integers[i];
      std::memcpy(places[i], &bits, BytesOf(element));
    }
  }

  const Function& function_;
  const FindMemory& find_;
  std::vector<TilePtr> values_;
  int64_t program_[2] = {0, 0};
  std::unordered_set<int64_t> written_, written_now_;  ///< by programs before, and by this one
};

std::vector<uint64_t> AddressesIn(const Function& function, const Parameters& parameters) {
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < parameters.size(); ++i) {
    uint64_t address = 0;
    std::memcpy(&address, parameters[i].data(), sizeof address);
    const bool is_hidden = i >= function.arguments.size();
    if (is_hidden && address != 0) throw Failure("there is an address behind those of its arguments");
    if (!is_hidden && address % static_cast<uint64_t>(function.arguments[i].divisibility) != 0) {
      throw Failure("argument " + std::to_string(i) + " is no multiple of what it is said to be");
    }
    addresses.push_back(address);
  }
  return addresses;
}

}  // namespace

std::vector<std::unique_ptr<EmulatedKernel>> OpenTriton(const void* image) {
  std::vector<std::unique_ptr<EmulatedKernel>> kernels;
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, kBegin.data(), kBegin.size()) != 0) return kernels;
  const auto function = std::make_shared<const Function>(Parse(text + kBegin.size()));
  auto kernel = std::make_unique<EmulatedKernel>();
  kernel->name = function->name;
  kernel->parameter_sizes.assign(function->arguments.size() + kHidden, sizeof(uint64_t));
  kernel->whole = [function](const Grid& grid, const Parameters& parameters, const FindMemory& find) {
    try {
      if (!std::has_single_bit(grid.threads) || grid.layers != 1)
        throw Failure("it is launched as no kernel of Triton");
      Launch(*function, find).Run(grid, AddressesIn(*function, parameters));
      return std::string();
    } catch (const std::exception& failure) {
      return "a kernel of Triton: " + std::string(failure.what());
    }
  };
  kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace standin
