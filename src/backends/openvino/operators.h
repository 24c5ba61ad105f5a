// operators.h: the operators that translation/ has rows for.
#pragma once

#include <set>
#include <string>

namespace collage::openvino {

const std::set<std::string, std::less<>>& SupportedOperators();

}  // namespace collage::openvino
