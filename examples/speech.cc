// speech.cc: finds speech in a stream of sound, piece by piece as it arrives, with a network that has a state.
//
//     speech MODEL.clg [SOUND.wav]        - reads from standard input
//
// MODEL is Silero's detector, compiled for one piece at a time: 512 new samples behind 64 old ones, and its state h, c.
// SOUND has 16,000 samples a second, one channel, 16 bits. Without one, a voice-like sound between two silences is made
// up.
#include <collage/runtime/stable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

using collage::stable::Error;
using collage::stable::Executable;
using collage::stable::Instance;
using collage::stable::View;

namespace {

constexpr int kRate = 16'000;
constexpr size_t kNew = 512, kOld = 64;
constexpr int kPiecesPerLine = 8;
constexpr int kBar = 40;

using Piece = std::array<float, kNew>;
/// Fills a piece; false where the sound ends before.
using Source = std::function<bool(Piece&)>;

template <typename Number>
Number Read(std::istream& stream) {
  std::array<char, sizeof(Number)> bytes{};
  stream.read(bytes.data(), bytes.size());
  Number number;
  std::memcpy(&number, bytes.data(), bytes.size());  // both WAV and x86-64 are little-endian
  return number;
}

/// Reads up to the first sample. A WAV file is a list of chunks, each with a name and a size.
void ReadHead(std::istream& stream, const std::string& name) {
  constexpr uint32_t kRiff = 0x46464952, kWave = 0x45564157, kFormat = 0x20746d66, kData = 0x61746164;
  const uint32_t riff = Read<uint32_t>(stream);
  Read<uint32_t>(stream);
  if (riff != kRiff || Read<uint32_t>(stream) != kWave) throw Error("'" + name + "' is no WAV file");
  bool is_right = false;
  while (stream) {
    const uint32_t chunk = Read<uint32_t>(stream), size = Read<uint32_t>(stream);
    if (chunk == kData && is_right) return;
    if (chunk == kData) break;
    std::vector<char> bytes(std::min<uint32_t>(size + size % 2, 1 << 16));
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (chunk != kFormat || bytes.size() < 16) continue;
    uint16_t coding, channels, bits;
    uint32_t rate;
    std::memcpy(&coding, &bytes[0], 2);
    std::memcpy(&channels, &bytes[2], 2);
    std::memcpy(&rate, &bytes[4], 4);
    std::memcpy(&bits, &bytes[14], 2);
    is_right = coding == 1 && channels == 1 && rate == kRate && bits == 16;
  }
  throw Error("'" + name + "' is not PCM with 16,000 samples a second, one channel and 16 bits");
}

Source FromStream(std::istream& stream, const std::string& name) {
  ReadHead(stream, name);
  return [&stream](Piece& piece) {
    for (float& sample : piece) sample = static_cast<float>(Read<int16_t>(stream)) / 32768;
    return static_cast<bool>(stream);
  };
}

/// Two seconds: silence, a buzz through three formants whose pitch and loudness change, silence.
std::vector<float> MadeUp() {
  constexpr double kSeconds = 2, kPitch = 120, kTurn = 6.283185307179586;
  std::vector<float> sound(static_cast<size_t>(kSeconds * kRate));
  std::mt19937 random(0);
  std::normal_distribution<float> noise(0, 1e-3f);
  double phase = 0, loudest = 0;
  for (size_t i = 0; i < sound.size(); ++i) {
    const double at = static_cast<double>(i) / kRate;
    phase += kTurn * (kPitch + 25 * std::sin(3 * kTurn * at)) / kRate;
    if (at < kSeconds / 3 || at > 2 * kSeconds / 3) continue;
    double voice = 0;
    for (int harmonic = 1; harmonic < 25; ++harmonic) {
      double loudness = 0;
      for (const double centre : {650, 1100, 2500}) {
        loudness += std::exp(-std::pow((harmonic * kPitch - centre) / 150, 2));
      }
      voice += loudness * std::sin(harmonic * phase);
    }
    sound[i] = static_cast<float>(voice * (0.5 + 0.5 * std::sin(4 * kTurn * at)));
    loudest = std::max<double>(loudest, std::abs(sound[i]));
  }
  for (float& sample : sound) sample = static_cast<float>(0.3 * sample / loudest) + noise(random);
  return sound;
}

Source FromSamples(std::vector<float> samples) {
  return [samples = std::move(samples), at = size_t{0}](Piece& piece) mutable {
    if (at + kNew > samples.size()) return false;
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(at), kNew, piece.begin());
    at += kNew;
    return true;
  };
}

/// The network and its state, which the instance's memory holds between runs.
class Detector {
 public:
  explicit Detector(const Executable& model)
      : run_(model),
        samples_(run_.Input<float>(model.FindInput("input"))),
        probability_(run_.Output<float>(model.FindOutput("speech_probs"))) {
    for (const auto& [from, to] : {std::pair("hn", "h"), std::pair("cn", "c")}) {
      states_.push_back({run_.Output<float>(model.FindOutput(from)), run_.Input<float>(model.FindInput(to))});
      std::fill(states_.back().to.begin(), states_.back().to.end(), 0.0f);
    }
    if (samples_.size != kOld + kNew) {
      throw Error("the model takes " + std::to_string(samples_.size) + " samples, not 576 as Silero's detector");
    }
    std::fill(samples_.begin(), samples_.end(), 0.0f);
  }

  /// Returns the probability of speech in the samples that follow those of the last call.
  float operator()(const Piece& piece) {
    std::copy(samples_.end() - kOld, samples_.end(), samples_.begin());
    std::copy(piece.begin(), piece.end(), samples_.begin() + kOld);
    run_.Run();
    for (const State& state : states_) std::copy(state.from.begin(), state.from.end(), state.to.begin());
    return probability_[0];
  }

 private:
  struct State {
    View<float> from;
    View<float> to;
  };

  Instance run_;
  View<float> samples_;
  View<float> probability_;
  std::vector<State> states_;
};

int Main(const std::vector<std::string>& args) {
  if (args.empty()) throw Error("usage: speech MODEL.clg [SOUND.wav]");
  Detector detector(Executable::Load(args[0]));
  std::ifstream file;
  Source next;
  if (args.size() == 1) {
    next = FromSamples(MadeUp());
  } else if (args[1] == "-") {
    next = FromStream(std::cin, "standard input");
  } else {
    file.open(args[1], std::ios::binary);
    if (!file) throw Error("cannot open sound '" + args[1] + "'");
    next = FromStream(file, args[1]);
  }
  Piece piece;
  for (int i = 0; next(piece); ++i) {
    const float probability = detector(piece);
    if (i % kPiecesPerLine != 0) continue;
    const std::string bar(static_cast<size_t>(std::lround(kBar * probability)), '#');
    std::printf("%5.2f s  %4.2f  %s\n", static_cast<double>(i) * kNew / kRate, probability, bar.c_str());
    std::fflush(stdout);
  }
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
