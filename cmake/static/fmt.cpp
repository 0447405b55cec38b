// The part of fmt that is not in its headers, for systems that ship it as a shared library alone.
// fmt/format-inl.h defines the functions; templates declared as extern must be instantiated here.

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API thousands_sep_result<char> thousands_sep_impl<char>(locale_ref);
template FMT_API char decimal_point_impl<char>(locale_ref);
template FMT_API locale_ref::locale_ref(const std::locale&);
template FMT_API std::locale locale_ref::get<std::locale>() const;
template FMT_API dragonbox::decimal_fp<float> dragonbox::to_decimal<float>(float) noexcept;
template FMT_API dragonbox::decimal_fp<double> dragonbox::to_decimal<double>(double) noexcept;

}  // namespace detail
FMT_END_NAMESPACE
