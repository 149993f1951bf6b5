// SPDX-License-Identifier: Apache-2.0
#ifndef VXD_TESTS_EMULATOR_INCLUDE_THRUST_ITERATOR_COUNTING_ITERATOR_H
#define VXD_TESTS_EMULATOR_INCLUDE_THRUST_ITERATOR_COUNTING_ITERATOR_H

namespace thrust
{
template <class T> struct counting_iterator {
    T first;

    T operator[](T i) const
    {
        return first + i;
    }
};

template <class T> counting_iterator<T> make_counting_iterator(T first)
{
    return {first};
}
} // namespace thrust

#endif
