// classify.cc: prints the likeliest classes of a picture.
//
//     classify MODEL.clg PICTURE.ppm [LABELS.txt]
//
// MODEL takes one picture [1, 3, H, W] of floats and returns scores. PICTURE is cut to the shape of H by W around its
// middle, resized, and normalised as networks for ImageNet are trained: colours from 0 to 1, less their mean, by their
// deviation. LABELS has the name of a class a line. Netpbm's formats P3 (text) and P6 (bytes) are read; programs such
// as `convert` write them.
#include <collage/runtime/stable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

using collage::stable::Error;
using collage::stable::Executable;
using collage::stable::Instance;
using collage::stable::TensorInfo;

namespace {

constexpr int kChannels = 3;
constexpr int kBrightest = 255;
constexpr int kMostPixels = 1 << 28;
constexpr size_t kTop = 5;
constexpr std::array<float, kChannels> kMean{0.485f, 0.456f, 0.406f};
constexpr std::array<float, kChannels> kDeviation{0.229f, 0.224f, 0.225f};

/// Pixels [height, width, 3], 0 to 255.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;

  float At(int y, int x, int channel) const {
    return pixels[(static_cast<size_t>(y) * width + x) * kChannels + channel];
  }
};

/// The next number of a file's head or text. A comment goes from # to the end of its line.
int NextNumber(std::istream& file) {
  while (file >> std::ws && file.peek() == '#') file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  int number = -1;
  file >> number;
  return number;
}

Picture ReadPicture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error("cannot open picture '" + path + "'");
  std::string format;
  file >> format;
  const bool is_text = format == "P3";
  if (!is_text && format != "P6") throw Error("'" + path + "' is no PPM file: it begins with neither P3 nor P6");
  Picture picture;
  picture.width = NextNumber(file);
  picture.height = NextNumber(file);
  const int brightest = NextNumber(file);
  if (picture.width < 1 || picture.height < 1 || picture.width > kMostPixels / picture.height ||
      brightest != kBrightest) {
    throw Error("'" + path + "' has no width, height and 255 in its head");
  }
  picture.pixels.resize(static_cast<size_t>(picture.width) * picture.height * kChannels);
  if (is_text) {
    for (uint8_t& value : picture.pixels) value = static_cast<uint8_t>(NextNumber(file));
  } else {
    file.get();  // one blank before the bytes
    file.read(reinterpret_cast<char*>(picture.pixels.data()), static_cast<std::streamsize>(picture.pixels.size()));
  }
  if (!file) throw Error("'" + path + "' ends before its last pixel");
  return picture;
}

/// The place between two pixels, and how much the second one weighs.
struct Between {
  int first;
  int second;
  float weight;

  Between(float place, int size) {
    const float inside = std::clamp(place, 0.0f, static_cast<float>(size - 1));
    first = static_cast<int>(inside);
    second = std::min(first + 1, size - 1);
    weight = inside - static_cast<float>(first);
  }
};

float Mix(float a, float b, float weight) { return a + weight * (b - a); }

/// Writes the picture's middle as [3, height, width] to `input`: bilinear between the centres of pixels, normalised.
void Normalise(const Picture& picture, int height, int width, float* input) {
  const float scale = std::min(static_cast<float>(picture.width) / width, static_cast<float>(picture.height) / height);
  const float left = (picture.width - scale * width) / 2, top = (picture.height - scale * height) / 2;
  for (int channel = 0; channel < kChannels; ++channel) {
    for (int y = 0; y < height; ++y) {
      const Between row(top + scale * (y + 0.5f) - 0.5f, picture.height);
      for (int x = 0; x < width; ++x) {
        const Between column(left + scale * (x + 0.5f) - 0.5f, picture.width);
        const auto in_row = [&](int of) {
          return Mix(picture.At(of, column.first, channel), picture.At(of, column.second, channel), column.weight);
        };
        const float colour = Mix(in_row(row.first), in_row(row.second), row.weight) / kBrightest;
        *input++ = (colour - kMean[channel]) / kDeviation[channel];
      }
    }
  }
}

std::vector<std::string> ReadLabels(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error("cannot open labels '" + path + "'");
  std::vector<std::string> labels;
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  return labels;
}

void PrintTop(const std::vector<float>& scores, const std::vector<std::string>& labels) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (const float score : scores) sum += std::exp(score - largest);
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(kTop, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  for (size_t i = 0; i < count; ++i) {
    const std::string name = order[i] < labels.size() ? labels[order[i]] : "class " + std::to_string(order[i]);
    std::printf("%s: %.2f %%\n", name.c_str(), 100 * std::exp(scores[order[i]] - largest) / sum);
  }
}

int Main(const std::vector<std::string>& args) {
  if (args.size() < 2) throw Error("usage: classify MODEL.clg PICTURE.ppm [LABELS.txt]");
  const Executable model = Executable::Load(args[0]);
  const TensorInfo info = model.inputs().at(0);
  if (model.inputs().size() != 1 || info.shape.size() != 4 || info.shape[0] != 1 || info.shape[1] != kChannels ||
      info.size_bytes == 0) {
    throw Error("'" + args[0] + "' does not take one picture [1, 3, H, W]");
  }
  const Picture picture = ReadPicture(args[1]);
  const std::vector<std::string> labels = args.size() > 2 ? ReadLabels(args[2]) : std::vector<std::string>{};
  Instance run(model);
  Normalise(picture, static_cast<int>(info.shape[2]), static_cast<int>(info.shape[3]), run.Input<float>(0).data);
  run.Run();
  const auto scores = run.Output<float>(0);
  PrintTop({scores.begin(), scores.end()}, labels);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main({argv + 1, argv + argc});
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status();
  }
}
