// SPDX-License-Identifier: Apache-2.0
#ifndef VXD_TESTS_EMULATOR_INCLUDE_THRUST_ITERATOR_TRANSFORM_ITERATOR_H
#define VXD_TESTS_EMULATOR_INCLUDE_THRUST_ITERATOR_TRANSFORM_ITERATOR_H

#include <cstddef>

namespace thrust
{
template <class ITERATOR, class FUNCTION> struct transform_iterator {
    ITERATOR at;
    FUNCTION function;

    auto operator[](size_t i) const
    {
        return function(at[i]);
    }
};

template <class ITERATOR, class FUNCTION>
transform_iterator<ITERATOR, FUNCTION> make_transform_iterator(ITERATOR at,
                                                               FUNCTION function)
{
    return {at, function};
}
} // namespace thrust

#endif
