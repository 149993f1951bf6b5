// SPDX-License-Identifier: Apache-2.0
#include "tests/support/server/model_files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_CAPACITY = 512
};

const char model_base[] =
    "{\"format\": \"voxeld-net/1\", \"name\": \"net\", \"axes\": [\"z\", \"y\", \"x\"],\n"
    " \"semantics\": \"spconv\", \"precision\": \"fp16\",\n"
    " \"weights\": {\"layout\": \"krsc\", \"prefix\": \"p.\"},\n"
    " \"input\": {\"mode\": \"voxelize\", \"voxel_size\": 0.5,\n"
    "  \"features\": [\"x\", {\"field\": \"intensity\", \"scale\": 0.5, \"bias\": 1}, "
    "1],\n"
    "  \"range\": [0, 0, 0, 4, 4, 4], \"bounded\": [9, 8, 8], \"max_points\": 5,\n"
    "  \"max_voxels\": 100, \"reduce\": \"mean\", \"overflow\": \"error\"},\n"
    " \"defaults\": {\"kernel\": 3, \"bias\": false, \"bn\": {\"eps\": 0.001},\n"
    "  \"act\": \"relu\"},\n"
    " \"layers\": [\n"
    "  {\"name\": \"a\", \"op\": \"subm\", \"ch\": 4, \"map\": \"m\"},\n"
    "  {\"name\": \"a2\", \"op\": \"subm\", \"ch\": 4, \"map\": \"m\", \"add\": \"a\"},\n"
    "  {\"name\": \"d\", \"op\": \"conv\", \"ch\": 8, \"kernel\": [3, 1, 2],\n"
    "   \"stride\": [2, 1, 2], \"padding\": [1, 0, 0], \"map\": \"d\"},\n"
    "  {\"name\": \"u\", \"op\": \"inverse\", \"of_map\": \"d\", \"ch\": 4,\n"
    "   \"bn\": {\"eps\": 0.001, \"stats\": \"batch\"}},\n"
    "  {\"name\": \"c\", \"op\": \"cat\", \"in\": [\"u\", \"a2\"]},\n"
    "  {\"name\": \"h\", \"op\": \"linear\", \"ch\": 3, \"bias\": true, \"bn\": null,\n"
    "   \"act\": {\"type\": \"leaky_relu\", \"alpha\": 0.1}},\n"
    "  {\"name\": \"g\", \"op\": \"global\", \"kind\": \"gem\", \"p_w\": \"g.p\"}],\n"
    " \"outputs\": [\n"
    "  {\"name\": \"labels\", \"from\": \"h\", \"as\": \"points\", \"argmax\": true,\n"
    "   \"fill\": 7, \"labels\": [\"road\", \"car\", \"tree\"]},\n"
    "  {\"name\": \"bev\", \"from\": \"d\", \"as\": \"dense\", \"fold\": \"z\"},\n"
    "  {\"name\": \"place\", \"from\": \"g\", \"as\": \"vector\", \"l2norm\": true},\n"
    "  {\"name\": \"rows\", \"from\": \"h\", \"as\": \"voxels\"}]}\n";

bool model_directory(char path[64])
{
    (void)snprintf(path, 64, "/tmp/vxd-model-XXXXXX");
    return mkdtemp(path) != NULL;
}

void model_directory_remove(const char *path)
{
    DIR *directory = opendir(path);
    const struct dirent *entry;
    char file[PATH_CAPACITY];

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        (void)snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            unlink(file) != 0) {
            (void)rmdir(file);
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    (void)rmdir(path);
}

bool model_put(const char *directory, const char *file, const void *bytes, size_t n_bytes)
{
    char path[PATH_CAPACITY];
    FILE *to;
    bool ok;

    (void)snprintf(path, sizeof path, "%s/%s", directory, file);
    to = fopen(path, "wb");
    if (to == NULL) {
        return false;
    }
    ok = fwrite(bytes, 1, n_bytes, to) == n_bytes;
    return fclose(to) == 0 && ok;
}

uint8_t *model_get(const char *path, size_t *n_bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    long n = -1;

    *n_bytes = 0;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        n = ftell(file);
    }
    if (n >= 0 && fseek(file, 0, SEEK_SET) == 0) {
        bytes = malloc((size_t)n + 1);
    }
    if (bytes != NULL) {
        *n_bytes = fread(bytes, 1, (size_t)n, file);
        bytes[*n_bytes] = 0;
    }
    (void)fclose(file);
    return bytes;
}

char *model_replace(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    size_t n_before = at != NULL ? (size_t)(at - text) : 0;
    size_t n = strlen(text) + strlen(to) + 1;
    char *out = at != NULL ? malloc(n) : NULL;

    if (out != NULL) {
        (void)snprintf(out, n, "%.*s%s%s", (int)n_before, text, to, at + strlen(from));
    }
    return out;
}

uint8_t *model_safetensors(const char *header, size_t n_data, size_t *n_bytes)
{
    size_t n = strlen(header);
    uint8_t *bytes = calloc(1, 8 + n + n_data + 1);

    *n_bytes = 8 + n + n_data;
    for (size_t i = 0; bytes != NULL && i < 8; i++) {
        bytes[i] = (uint8_t)((uint64_t)n >> (8 * i));
    }
    if (bytes != NULL) {
        memcpy(bytes + 8, header, n);
        for (size_t i = 0; i < n_data; i++) {
            bytes[8 + n + i] = (uint8_t)i;
        }
    }
    return bytes;
}
