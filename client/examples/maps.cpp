// SPDX-License-Identifier: Apache-2.0
/* Keeps a map of keys and counts, from C++17: records are freed by unique_ptr, errors become
 * exceptions.
 * Build: c++ -std=c++17 maps.cpp $(pkg-config --cflags --libs voxeld) */
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <voxeld.h>

namespace
{

template <auto Free> struct Deleter {
    template <typename T> void operator()(T *held) const
    {
        Free(held);
    }
};
using Client = std::unique_ptr<voxeld_client, Deleter<voxeld_close>>;
using Result = std::unique_ptr<voxeld_map_result, Deleter<voxeld_map_result_free>>;

void check(voxeld_status status, const voxeld_error &error)
{
    if (status != VOXELD_OK) {
        throw std::runtime_error(std::string(voxeld_status_name(status)) + " " +
                                 error.field + ": " + error.message);
    }
}

voxeld_array rows(const char *name, voxeld_dtype dtype, const void *data, size_t n,
                  size_t n_elements)
{
    voxeld_array array{};
    array.name = name;
    array.dtype = dtype;
    array.data = data;
    array.n = n;
    array.n_elements = n_elements;
    return array;
}

void keep_counts(const std::string &name)
{
    voxeld_error error{};
    voxeld_client *connected = nullptr;
    check(voxeld_connect(nullptr, &connected, &error), error);
    const Client client(connected);

    voxeld_map_array count{};
    count.name = "count";
    count.dtype = VOXELD_UINT64;
    voxeld_map_create_request create{};
    create.map = name.c_str();
    create.arrays = &count;
    create.n_arrays = 1;
    check(voxeld_map_create(client.get(), &create, nullptr, &error), error);

    const std::vector<int32_t> keys = {1, 2, 3, -4, 5, 6, 1, 2, 3};
    const std::vector<uint64_t> ones(keys.size() / 3, 1);
    const voxeld_array values = rows("count", VOXELD_UINT64, ones.data(), ones.size(), 1);
    voxeld_map_update_request update{};
    update.map = name.c_str();
    update.keys = rows(nullptr, VOXELD_INT32, keys.data(), ones.size(), 3);
    update.values = &values;
    update.n_values = 1;
    update.combine = VOXELD_COMBINE_ADD;
    update.insert_missing = true;
    voxeld_map_result *updated = nullptr;
    check(voxeld_map_update(client.get(), &update, &updated, &error), error);
    const Result result(updated);
    std::printf("%zu keys, %" PRIu64 " new; %s has %" PRIu64 " entries\n", result->n,
                result->n_new, name.c_str(), result->n_entries);
}

} // namespace

int main(int argc, char **argv)
{
    try {
        keep_counts(argc > 1 ? argv[1] : "seen");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
    return 0;
}
