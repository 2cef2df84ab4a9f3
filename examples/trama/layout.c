/* SPDX-License-Identifier: Apache-2.0 */
/* trama layout: the boxes of a tensor on each process, in words, in a picture of characters, and as SVG. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "progress.h"

enum { OPTION_SVG = 256, OPTION_ALL };
enum { MOST_LINES = 64, ENDS = 8, MOST_DRAWN = 4096, CHUNK = 4096 }; /* processes */

static const struct argp_option options[] = {
    {"mesh", 'm', "SPEC", 0, "the mesh, as dp=2,mp=3, with weights as dp=[3,1], with ids as 4:3,2,1,0", 0},
    {"shape", 's', "N,N", 0, "extents of the tensor; an empty text for a scalar", 0},
    {"layout", 'l', "LAYOUT", 0, "how it lies: R,S(0), or per dim mp,- or [1,-1]; partial P(sum), masked mask{1,0}", 0},
    {"svg", OPTION_SVG, "FILE", 0, "draw it into a file; of at most 4096 processes", 0},
    {"all", OPTION_ALL, NULL, 0, "a line for each process, however many there are", 0},
    {0}};

static const char doc[] = "Shows the box of a tensor that each process holds.\v"
                          "Each process has a line with its place in the mesh and its box in global indices, as "
                          "[0:4,0:5], and, of a partial value, "
                          "which term it holds; of more than 64 processes there is a summary, "
                          "and the lines of the first and the last 8 unless --all is given. A tensor of one or two "
                          "dims is drawn where that fits 80 columns: in "
                          "the cells stand the processes, "
                          "`,` between equal copies, `+` between the terms of a partial value.";

typedef struct request {
    const char *mesh_text, *shape_text, *layout_text, *svg;
    bool all;
    trama_mesh *mesh;
    trama_shape shape;
    trama_layout layout;
} request;

/* Reads the options after all are known: a layout needs its mesh. */
static void understand(struct argp_state *state, request *r)
{
    if (!r->mesh_text || !r->shape_text || !r->layout_text)
        argp_error(state, "%s is missing", !r->mesh_text ? "--mesh" : !r->shape_text ? "--shape" : "--layout");
    r->mesh = argument_mesh(state, "--mesh", r->mesh_text, 0, NULL);
    r->shape = argument_shape(state, "--shape", r->shape_text);
    r->layout = argument_layout(state, "--layout", r->layout_text, r->mesh, r->shape.ndim);
    if (r->svg && trama_mesh_size(r->mesh) > MOST_DRAWN)
        argp_error(state, "--svg '%s': the mesh has %d processes, and a drawing shows at most %d", r->svg,
                   trama_mesh_size(r->mesh), MOST_DRAWN);
    for (int a = 0; a < r->layout.naxes; a++)
        if (r->layout.axis[a].kind == TRAMA_OPEN)
            argp_error(state, "--layout '%s': axis %d is open (?), so the boxes are not known", r->layout_text, a);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case 'm':
        r->mesh_text = text;
        return 0;
    case 's':
        r->shape_text = text;
        return 0;
    case 'l':
        r->layout_text = text;
        return 0;
    case OPTION_SVG:
        r->svg = text;
        return 0;
    case OPTION_ALL:
        r->all = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': there are only options", text);
        return 0;
    case ARGP_KEY_END:
        understand(state, r);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Mesh, layout in both forms, shape. */
static char *title_of(const request *r)
{
    char *title = NULL, *mesh = trama_mesh_text(r->mesh), *layout = trama_layout_text(r->mesh, &r->layout);
    char *mapping = trama_layout_mapping(r->mesh, r->shape.ndim, &r->layout);
    size_t size;
    FILE *text = open_memstream(&title, &size);
    if (!text)
        fail("no memory for a title");
    fprintf(text, "mesh %s, layout %s = %s, shape [", mesh, layout, mapping);
    for (int d = 0; d < r->shape.ndim; d++)
        fprintf(text, "%s%" PRId64, d ? "," : "", r->shape.dim[d]);
    fprintf(text, "]");
    fclose(text);
    trama_text_free(&mesh);
    trama_text_free(&layout);
    trama_text_free(&mapping);
    return title;
}

static void print_lines(const request *r, int first, int n)
{
    char *lines;
    must(trama_layout_describe_some(r->mesh, &r->layout, r->shape, first, n, &lines));
    fputs(lines, stdout);
    trama_text_free(&lines);
}

static void print_each(const request *r)
{
    const int size = trama_mesh_size(r->mesh);
    progress p = progress_begin(true, size);
    for (int first = 0, n; first < size && !ferror(stdout); first += n) {
        n = size - first < CHUNK ? size - first : CHUNK;
        print_lines(r, first, n);
        progress_count(&p, first + n, "processes");
    }
}

static void print_summary(const request *r)
{
    const int size = trama_mesh_size(r->mesh);
    char *summary;
    must(trama_layout_summary(r->mesh, &r->layout, r->shape, &summary));
    fputs(summary, stdout);
    trama_text_free(&summary);
    print_lines(r, 0, ENDS);
    printf("... %d more; --all prints them\n", size - 2 * ENDS);
    print_lines(r, size - ENDS, ENDS);
}

static void print_picture(const request *r)
{
    char *picture;
    if (trama_mesh_size(r->mesh) > MOST_DRAWN)
        return;
    must(trama_layout_picture(r->mesh, &r->layout, r->shape, &picture));
    if (*picture)
        printf("\n%s", picture);
    else if ((r->shape.ndim == 1 || r->shape.ndim == 2) && trama_shape_count(r->shape))
        puts("\nno picture: it does not fit 80 columns; --svg draws it");
    trama_text_free(&picture);
}

static void write_svg(const request *r, const char *title)
{
    char *svg;
    must(trama_layout_svg(r->mesh, &r->layout, r->shape, title, &svg));
    FILE *file = fopen(r->svg, "w");
    if (!file)
        fail("--svg '%s': %s", r->svg, strerror(errno));
    fputs(svg, file);
    if (!close_written(file))
        fail("--svg '%s': %s", r->svg, strerror(errno));
    trama_text_free(&svg);
}

int command_layout(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    request r = {.svg = NULL};
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    char *title = title_of(&r);
    if (r.svg)
        write_svg(&r, title);
    puts(title);
    if (r.all || trama_mesh_size(r.mesh) <= MOST_LINES)
        print_each(&r);
    else
        print_summary(&r);
    print_picture(&r);
    free(title);
    trama_mesh_destroy(&r.mesh);
    return EXIT_SUCCESS;
}
