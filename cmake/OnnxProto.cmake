# Compiles ONNX's schema, taken from the pinned wheel, with Debian's protoc.
set(generated ${CMAKE_BINARY_DIR}/generated/onnx)
add_custom_command(
  OUTPUT ${generated}/onnx-ml.pb.cc ${generated}/onnx-ml.pb.h
  COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
  COMMAND protobuf::protoc --cpp_out=${generated} -I ${COLLAGE_SITE_PACKAGES}/onnx ${COLLAGE_ONNX_PROTO}
  DEPENDS ${COLLAGE_ONNX_PROTO})
add_library(collage_onnx_proto STATIC ${generated}/onnx-ml.pb.cc)
target_include_directories(collage_onnx_proto SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/generated)
target_compile_options(collage_onnx_proto PRIVATE -w -O1)
target_link_libraries(collage_onnx_proto PUBLIC protobuf::libprotobuf)
