// lane_constants.cc: most constant vectors are one value, a progression, or truth values, which are bits of one number.
#include "backends/native/compiler/gpu/lane_constants.h"

#include <vector>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"

namespace collage::native {
namespace {

using Elements = std::vector<llvm::Constant*>;

/// The lane's bit of all truth values as one number.
llvm::Value* BitOfLane(llvm::IRBuilder<>& builder, const Elements& elements, llvm::Value* lane) {
  uint32_t bits = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const auto* bit = llvm::dyn_cast<llvm::ConstantInt>(elements[i]);
    if (bit == nullptr) return nullptr;
    bits |= static_cast<uint32_t>(bit->isOne()) << i;
  }
  return builder.CreateTrunc(builder.CreateLShr(builder.getInt32(bits), lane), builder.getInt1Ty());
}

/// first + lane / period * row + lane % period * step, for some power of two, if the elements are such; else null.
llvm::Value* OnLines(llvm::IRBuilder<>& builder, const Elements& elements, llvm::Value* lane) {
  std::vector<int64_t> numbers;
  for (const llvm::Constant* element : elements) {
    const auto* number = llvm::dyn_cast<llvm::ConstantInt>(element);
    if (number == nullptr || number->getBitWidth() > 64) return nullptr;
    numbers.push_back(number->getSExtValue());
  }
  llvm::Type* type = elements[0]->getType();
  const auto times = [&](llvm::Value* index, int64_t factor) {
    return builder.CreateMul(builder.CreateZExtOrTrunc(index, type), llvm::ConstantInt::getSigned(type, factor));
  };
  const int64_t step = numbers[1] - numbers[0];
  for (size_t period = numbers.size(); period > 1; period /= 2) {
    const int64_t row = period == numbers.size() ? 0 : numbers[period] - numbers[0];
    bool is_such = true;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t expected =
          numbers[0] + static_cast<int64_t>(i / period) * row + static_cast<int64_t>(i % period) * step;
      is_such = is_such && numbers[i] == expected;
    }
    if (!is_such) continue;
    llvm::Value* within = builder.CreateAnd(lane, period - 1);
    llvm::Value* place = builder.CreateAdd(times(within, step), elements[0]);
    if (row == 0) return place;
    return builder.CreateAdd(place,
                             times(builder.CreateUDiv(lane, builder.getInt32(static_cast<uint32_t>(period))), row));
  }
  return nullptr;
}

llvm::Value* FromTable(llvm::IRBuilder<>& builder, const Elements& elements, llvm::Value* lane) {
  llvm::Type* type = elements[0]->getType();
  auto* array = llvm::ArrayType::get(type, elements.size());
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  auto* table = new llvm::GlobalVariable(module, array, /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(array, elements), "lanes");  // the module owns it
  return builder.CreateLoad(type, builder.CreateGEP(type, table, lane));
}

}  // namespace

llvm::Value* ElementOfLane(llvm::IRBuilder<>& builder, llvm::Constant& vector, llvm::Value* lane) {
  llvm::Type* type = vector.getType()->getScalarType();
  if (llvm::isa<llvm::UndefValue>(vector)) return llvm::UndefValue::get(type);
  if (llvm::Constant* splat = vector.getSplatValue(/*AllowPoison=*/true)) return splat;
  Elements elements;
  for (unsigned i = 0; i < llvm::cast<llvm::FixedVectorType>(vector.getType())->getNumElements(); ++i) {
    llvm::Constant* element = vector.getAggregateElement(i);
    if (element == nullptr) return nullptr;
    elements.push_back(llvm::isa<llvm::UndefValue>(element) ? llvm::Constant::getNullValue(type) : element);
  }
  if (type->isIntegerTy(1)) return BitOfLane(builder, elements, lane);
  if (llvm::Value* value = OnLines(builder, elements, lane)) return value;
  return FromTable(builder, elements, lane);
}

}  // namespace collage::native
