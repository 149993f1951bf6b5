// SPDX-License-Identifier: Apache-2.0
/* voxelctl scene show: a picture in the terminal. A character cell is about twice as high as it
 * is wide, so it shows two pixels: the upper one as the colour of a half block, the lower one as
 * what is behind it. Where the output is no terminal, characters of one cell a mean of both. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/voxelctl/render/render_job.h"
#include "client/voxelctl/render/voxelctl_render.h"

enum {
    DEFAULT_COLUMNS = 80,
    DEFAULT_LINES = 24,
    MAX_COLUMNS = 1000,
    CHANNELS = 3
};

/* As large as the terminal, less the line of the prompt. */
static void choose_size(struct voxeld_scene_render_request *request)
{
    struct winsize size = {0};
    unsigned columns = DEFAULT_COLUMNS;
    unsigned lines = DEFAULT_LINES;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 &&
        size.ws_row > 1) {
        columns = size.ws_col < MAX_COLUMNS ? size.ws_col : MAX_COLUMNS;
        lines = size.ws_row < MAX_COLUMNS ? size.ws_row : MAX_COLUMNS;
    }
    request->width = columns;
    request->height = 2 * (lines - 1);
}

static const uint8_t *pixel(const struct voxeld_picture *picture, uint32_t x, uint32_t y)
{
    uint32_t row = y < picture->height ? y : picture->height - 1;

    return (const uint8_t *)picture->pixels.data +
           CHANNELS * ((size_t)row * picture->width + x);
}

static void print_blocks(const struct voxeld_picture *picture)
{
    for (uint32_t y = 0; y < picture->height; y += 2) {
        for (uint32_t x = 0; x < picture->width; x++) {
            const uint8_t *upper = pixel(picture, x, y);
            const uint8_t *lower = pixel(picture, x, y + 1);

            (void)printf("\x1b[38;2;%u;%u;%um\x1b[48;2;%u;%u;%um\xe2\x96\x80", upper[0],
                         upper[1], upper[2], lower[0], lower[1], lower[2]);
        }
        (void)fputs("\x1b[0m\n", stdout);
    }
}

static unsigned brightness(const uint8_t *rgb)
{
    return (rgb[0] * 2126u + rgb[1] * 7152u + rgb[2] * 722u) / 10000u;
}

/* From the darkest to the brightest pixel, as terminals have few characters to tell them. */
static void print_characters(const struct voxeld_picture *picture)
{
    static const char ramp[] = " .:-=+*#%@";
    const unsigned n = sizeof ramp - 1;
    unsigned low = 255;
    unsigned high = 0;

    for (size_t i = 0; i < (size_t)picture->width * picture->height; i++) {
        unsigned value = brightness((const uint8_t *)picture->pixels.data + CHANNELS * i);

        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    for (uint32_t y = 0; y < picture->height; y += 2) {
        for (uint32_t x = 0; x < picture->width; x++) {
            unsigned mean = (brightness(pixel(picture, x, y)) +
                             brightness(pixel(picture, x, y + 1))) /
                            2;

            (void)fputc(ramp[(mean - low) * n / (high - low + 1)], stdout);
        }
        (void)fputc('\n', stdout);
    }
}

static bool is_shown(enum voxeld_render_mode mode)
{
    return mode != VOXELD_RENDER_DEPTH && mode != VOXELD_RENDER_NORMAL &&
           mode != VOXELD_RENDER_MATERIAL;
}

int ctl_show_run(struct ctl_globals *globals, int argc, char **argv)
{
    struct ctl_render_job job = {.manual = &ctl_render_show_manual};
    struct voxeld_picture *picture = NULL;
    int result;

    if (ctl_render_take(globals, argc, argv, &job, &result)) {
        return result;
    }
    if (!is_shown(job.request.mode)) {
        return ctl_usage("scene show",
                         "only colour, height, ao and path are shown; scene render "
                         "makes files of the others");
    }
    if (job.request.width == 0) {
        choose_size(&job.request);
    }
    if (job.request.samples == 0 && job.request.mode != VOXELD_RENDER_PATH) {
        job.request.samples = 4;
    }
    result = ctl_render_call(globals, &job, &picture);
    if (result == CTL_OK && isatty(STDOUT_FILENO) != 0) {
        print_blocks(picture);
        result = ctl_flush();
    } else if (result == CTL_OK) {
        print_characters(picture);
        result = ctl_flush();
    }
    voxeld_picture_free(picture);
    return result;
}
