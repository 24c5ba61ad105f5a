// narrow_types_test.cc: element types of fewer than 8 bits and 8-bit floats, compared with a search among all values.
#include "frontend/onnx/narrow_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

#include "collage/frontend/onnx.h"
#include "collage/support/error.h"
#include "ir/eval/evaluate.h"
#include "runtime/split_mix.h"
#include "unit/frontend/model_file.h"

namespace collage {
namespace {

using onnx::TensorProto;

constexpr TensorProto::DataType kFloats[] = {TensorProto::FLOAT8E4M3FN, TensorProto::FLOAT8E4M3FNUZ,
                                             TensorProto::FLOAT8E5M2, TensorProto::FLOAT8E5M2FNUZ,
                                             TensorProto::FLOAT4E2M1};

std::string ImportError(const ModelFile& model) {
  try {
    ImportOnnx(model.Write(), {});
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

/// The result of a model of one input.
Tensor ResultOf(const ModelFile& model, const Tensor& x) {
  return Evaluate(ImportOnnx(model.Write(), {}).main(), {{x}})[0];
}

/// `x` cast to `type`.
Tensor Cast(const Tensor& x, TensorProto::DataType from, int to, int saturate = 1, const std::string& mode = "up") {
  ModelFile model(25);
  model.Input("x", from, x.shape()).Output("y");
  onnx::NodeProto& node = model.Node("Cast", {"x"}, {"y"});
  SetInt(node, "to", to);
  SetInt(node, "saturate", saturate);
  if (to == TensorProto::FLOAT8E8M0) SetString(node, "round_mode", mode);
  return ResultOf(model, x);
}

/// Codes of finite numbers of `type`, and their values.
std::vector<std::pair<int, double>> FiniteNumbers(const NarrowType& type) {
  std::vector<std::pair<int, double>> all;
  for (int code = 0; code < 1 << type.bits; ++code) {
    const double value = NarrowValue(type, code);
    if (std::isfinite(value)) all.emplace_back(code, value);
  }
  return all;
}

/// The finite number next to `x`, of two equally near ones that of even code.
double Nearest(const std::vector<std::pair<int, double>>& numbers, double x) {
  std::pair<int, double> best = numbers[0];
  for (const auto& [code, value] : numbers) {
    const double distance = std::abs(value - x), least = std::abs(best.second - x);
    if (distance < least || (distance == least && code % 2 == 0)) best = {code, value};
  }
  return best.second;
}

/// Float32 of all magnitudes, and what lies between two numbers of `type`.
std::vector<float> Samples(const NarrowType& type) {
  std::vector<float> samples;
  const auto numbers = FiniteNumbers(type);
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const double middle = (numbers[i].second + numbers[i + 1].second) / 2;
    for (const double x : {numbers[i].second, middle, std::nextafter(middle, 1e9), std::nextafter(middle, -1e9)}) {
      samples.push_back(static_cast<float>(x));
    }
  }
  SplitMix random(7);
  for (int i = 0; i < 2000; ++i) {
    const float x = std::ldexp(static_cast<float>(2 * random.Uniform() - 1), static_cast<int>(random.Next() % 48) - 32);
    samples.push_back(x);
  }
  return samples;
}

TEST(NarrowTypesTest, FloatsRoundToTheNearestNumber) {
  for (const TensorProto::DataType onnx_type : kFloats) {
    const NarrowType& type = *FindNarrowType(onnx_type);
    const auto numbers = FiniteNumbers(type);
    const std::vector<float> samples = Samples(type);
    const Tensor x = Tensor::Of<float>({static_cast<int64_t>(samples.size())}, kFloat32, samples);
    const Tensor codes = Cast(x, TensorProto::FLOAT, onnx_type);
    ASSERT_EQ(codes.dtype(), kUInt8);
    for (size_t i = 0; i < samples.size(); ++i) {
      const int code = codes.data<uint8_t>()[i];
      const double got = NarrowValue(type, code);
      const double nearest = Nearest(numbers, static_cast<double>(samples[i]));
      EXPECT_EQ(got, nearest) << type.name << " of " << samples[i];
      if (got == 0 && type.format.signs_zero) {
        EXPECT_EQ(std::signbit(got), std::signbit(samples[i])) << type.name;
      }
    }
  }
}

TEST(NarrowTypesTest, CodesStayThemselvesOnTheWayThroughFloats) {
  for (const TensorProto::DataType onnx_type : kFloats) {
    const NarrowType& type = *FindNarrowType(onnx_type);
    const Tensor codes = Tensor::Empty({1 << type.bits}, kUInt8);
    for (int code = 0; code < 1 << type.bits; ++code) codes.data<uint8_t>()[code] = static_cast<uint8_t>(code);
    const Tensor values = Cast(codes, onnx_type, TensorProto::FLOAT);
    const Tensor back = Cast(values, TensorProto::FLOAT, onnx_type);
    for (int code = 0; code < 1 << type.bits; ++code) {
      const double value = NarrowValue(type, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(values.At(code))) << type.name << " " << code;
      } else {
        EXPECT_EQ(values.At(code), value) << type.name << " " << code;
        if (std::isfinite(value)) {
          EXPECT_EQ(back.At(code), code) << type.name;
        }
      }
    }
  }
}

TEST(NarrowTypesTest, LargeFloatsSaturateUnlessTheyMayNot) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({5}, kFloat32, std::vector<float>{1e9F, -1e9F, kInfinity, -kInfinity, NAN});
  struct Wanted {
    TensorProto::DataType type;
    std::vector<uint8_t> saturated;
    std::vector<uint8_t> beyond;
  };
  const Wanted all[] = {
      {TensorProto::FLOAT8E4M3FN, {0x7e, 0xfe, 0x7e, 0xfe, 0x7f}, {0x7f, 0xff, 0x7f, 0xff, 0x7f}},
      {TensorProto::FLOAT8E4M3FNUZ, {0x7f, 0xff, 0x7f, 0xff, 0x80}, {0x80, 0x80, 0x80, 0x80, 0x80}},
      {TensorProto::FLOAT8E5M2, {0x7b, 0xfb, 0x7b, 0xfb, 0x7e}, {0x7c, 0xfc, 0x7c, 0xfc, 0x7e}},
      {TensorProto::FLOAT8E5M2FNUZ, {0x7f, 0xff, 0x7f, 0xff, 0x80}, {0x80, 0x80, 0x80, 0x80, 0x80}},
      {TensorProto::FLOAT4E2M1, {7, 15, 7, 15, 8}, {7, 15, 7, 15, 8}},
  };
  for (const Wanted& wanted : all) {
    const Tensor saturated = Cast(x, TensorProto::FLOAT, wanted.type);
    const Tensor beyond = Cast(x, TensorProto::FLOAT, wanted.type, 0);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(saturated.data<uint8_t>()[i], wanted.saturated[i]) << wanted.type << " " << x.At(int64_t(i));
      EXPECT_EQ(beyond.data<uint8_t>()[i], wanted.beyond[i]) << wanted.type << " " << x.At(int64_t(i));
    }
  }
}

TEST(NarrowTypesTest, PowersOfTwoRoundAsTheirModeSays) {
  const Tensor x = Tensor::Of<float>({6}, kFloat32, std::vector<float>{1, 1.25F, 1.5F, 3.9F, 0, 3e38F});
  const auto codes = [&](const std::string& mode) {
    std::vector<int> all;
    const Tensor result = Cast(x, TensorProto::FLOAT, TensorProto::FLOAT8E8M0, 1, mode);
    for (int64_t i = 0; i < 6; ++i) all.push_back(static_cast<int>(result.At(i)));
    return all;
  };
  EXPECT_EQ(codes("up"), (std::vector<int>{127, 128, 128, 129, 0, 254}));
  EXPECT_EQ(codes("down"), (std::vector<int>{127, 127, 127, 128, 0, 254}));
  EXPECT_EQ(codes("nearest"), (std::vector<int>{127, 127, 128, 129, 0, 254}));
}

TEST(NarrowTypesTest, IntegersWrapAndQuantisedOnesSaturate) {
  const std::vector<float> values{-9, -8, -1, 0, 7, 8, 15, 16};
  const Tensor x = Tensor::Of<float>({8}, kFloat32, values);
  const Tensor wrapped = Cast(x, TensorProto::FLOAT, TensorProto::INT4);
  EXPECT_EQ(wrapped.ToInts(), (std::vector<int64_t>{7, -8, -1, 0, 7, -8, -1, 0}));
  EXPECT_EQ(Cast(x, TensorProto::FLOAT, TensorProto::UINT2).ToInts(), (std::vector<int64_t>{3, 0, 3, 0, 3, 0, 3, 0}));
  ModelFile model(25);
  model.Input("x", TensorProto::FLOAT, {8}).Output("y");
  model.Initializer("scale", MakeScalar(1, kFloat32)->value());
  SetInt(model.Node("QuantizeLinear", {"x", "scale"}, {"y"}), "output_dtype", TensorProto::INT4);
  EXPECT_EQ(ResultOf(model, x).ToInts(), (std::vector<int64_t>{-8, -8, -1, 0, 7, 7, 7, 7}));
}

TEST(NarrowTypesTest, NoZeroHasASignBehindItsZeroPoint) {
  ModelFile model(25);
  model.Input("x", TensorProto::FLOAT, {2}).Output("y");
  model.Initializer("scale", MakeScalar(1, kFloat32)->value());
  SetInt(model.Node("QuantizeLinear", {"x", "scale"}, {"y"}), "output_dtype", TensorProto::FLOAT4E2M1);
  const Tensor codes = ResultOf(model, Tensor::Of<float>({2}, kFloat32, std::vector<float>{-0.0F, -1}));
  EXPECT_EQ(codes.ToInts(), (std::vector<int64_t>{0, 10}));
}

/// Adds an initializer of `type` whose packed bytes are `raw`.
void AddPacked(ModelFile& model, const std::string& name, TensorProto::DataType type, const Shape& shape,
               const std::string& raw) {
  TensorProto& tensor = *model.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const int64_t size : shape) tensor.add_dims(size);
  tensor.set_raw_data(raw);
}

TEST(NarrowTypesTest, PackedWeightsAreIntegersOf8BitsBelowDequantize) {
  ModelFile model(25);
  model.Input("x", TensorProto::FLOAT, {1, 3}).Output("y");
  AddPacked(model, "w", TensorProto::INT4, {3}, "\x8f\x07");  // -1, -8, 7
  model.Initializer("scale", MakeScalar(0.5, kFloat32)->value());
  model.Node("DequantizeLinear", {"w", "scale"}, {"d"});
  model.Node("Mul", {"x", "d"}, {"y"});
  const Tensor ones = Tensor::Of<float>({1, 3}, kFloat32, std::vector<float>{1, 1, 1});
  const Tensor y = ResultOf(model, ones);
  EXPECT_EQ(y.At(0), -0.5);
  EXPECT_EQ(y.At(1), -4);
  EXPECT_EQ(y.At(2), 3.5);
}

TEST(NarrowTypesTest, PackedBytesMustBeAsManyAsElementsNeed) {
  ModelFile model(25);
  model.Output("y");
  AddPacked(model, "w", TensorProto::UINT2, {5}, "\x01");
  model.Node("Identity", {"w"}, {"y"});
  EXPECT_EQ(ImportError(model), "1 bytes of data for a uint8 (2)");
}

TEST(NarrowTypesTest, ElementsMoveButAreNotComputedWith) {
  ModelFile model(25);
  model.Input("x", TensorProto::FLOAT8E5M2, {2, 3}).Output("y");
  model.Node("Transpose", {"x"}, {"t"});
  SetInt(model.Node("Cast", {"t"}, {"y"}), "to", TensorProto::FLOAT);
  const Tensor codes = Tensor::Of<uint8_t>({2, 3}, kUInt8, std::vector<uint8_t>{0x3c, 0x40, 0x44, 0xbc, 0, 0x38});
  const Tensor y = ResultOf(model, codes);
  EXPECT_EQ(y.shape(), (Shape{3, 2}));
  EXPECT_EQ(y.At(1), -1);
  EXPECT_EQ(y.At(4), 4);

  ModelFile adds(25);
  adds.Input("x", TensorProto::FLOAT8E5M2, {2}).Output("y");
  adds.Node("Add", {"x", "x"}, {"y"}, "sum");
  EXPECT_EQ(ImportError(adds), "node 'sum' (Add, opset 25): input 0 has element type FLOAT8E5M2");
}

TEST(NarrowTypesTest, BitsOfOneTypeAreElementsOfAnother) {
  ModelFile model(26);
  model.Input("x", TensorProto::INT4, {3}).Output("y");
  SetInt(model.Node("BitCast", {"x"}, {"y"}), "to", TensorProto::UINT4);
  const Tensor x = Tensor::Of<int8_t>({3}, kInt8, std::vector<int8_t>{-8, -1, 7});
  EXPECT_EQ(ResultOf(model, x).ToInts(), (std::vector<int64_t>{8, 15, 7}));
}

TEST(NarrowTypesTest, FloatsAreQuantisedAlongAnAxis) {
  ModelFile model(25);
  model.Input("x", TensorProto::FLOAT, {2, 2}).Output("y");
  model.Initializer("scale", Tensor::Of<float>({2}, kFloat32, std::vector<float>{0.5F, 2}));
  onnx::NodeProto& quantize = model.Node("QuantizeLinear", {"x", "scale"}, {"q"});
  SetInt(quantize, "axis", 0);
  SetInt(quantize, "output_dtype", TensorProto::FLOAT8E4M3FN);
  SetInt(model.Node("DequantizeLinear", {"q", "scale"}, {"y"}), "axis", 0);
  const Tensor x = Tensor::Of<float>({2, 2}, kFloat32, std::vector<float>{1.03F, -300, 1.03F, -300});
  const Tensor y = ResultOf(model, x);
  EXPECT_EQ(y.At(0), 1);     // 2.06 is nearest to 2
  EXPECT_EQ(y.At(1), -224);  // the largest, 448, times the scale
  EXPECT_EQ(y.At(2), 1);     // 0.515 is nearest to 0.5
  EXPECT_EQ(y.At(3), -288);  // 150 is nearest to 144
}

}  // namespace
}  // namespace collage
