// model_file.cc: ONNX models as files.
#include "frontend/onnx/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "collage/support/error.h"
#include "runtime/plan/file_kind.h"
#include "support/file.h"

namespace collage {

void ReadModelFile(const std::filesystem::path& path, onnx::ModelProto& model) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  if (file->bytes().size() > std::numeric_limits<int>::max()) {
    throw Error(ErrorCategory::kUnsupported, "the file is larger than 2 GB", path.string(),
                "store the weights as external data");
  }
  google::protobuf::io::ArrayInputStream array(file->bytes().data(), static_cast<int>(file->bytes().size()));
  google::protobuf::io::CodedInputStream stream(&array);
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  google::protobuf::SetLogHandler(nullptr);
  const bool parsed = model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (!parsed || !model.has_graph() || model.graph().node_size() == 0) {
    const std::optional<FileKind> kind = KindOf(file->bytes());
    if (kind && kind->name != std::string_view("an ONNX model")) {
      throw Error(ErrorCategory::kInput, fmt::format("not an ONNX model, but {}", kind->name), path.string(),
                  kind->hint);
    }
    throw Error(ErrorCategory::kInput, "not an ONNX model: the file is damaged, truncated or of another kind",
                path.string());
  }
}

}  // namespace collage
