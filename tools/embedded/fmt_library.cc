// fmt_library.cc: those functions of fmt that its headers leave to its library, of which Debian has no static one.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
// Templates that the headers declare `extern`, and the runtime's texts need.
template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;
}  // namespace detail
FMT_END_NAMESPACE
