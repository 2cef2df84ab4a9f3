/* SPDX-License-Identifier: Apache-2.0 */
/* trama reshard: the messages of a change of layout, and their bytes over the lower bound. */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "progress.h"
#include "reshard_svg.h"

enum { OPTION_FROM = 256, OPTION_TO, OPTION_TO_MESH, OPTION_MOVES, OPTION_SVG, OPTION_ALL };
enum { MOST_PLANNED = 64, MOST_DRAWN = 1024 }; /* processes */

static const struct argp_option options[] = {
    {"mesh", 'm', "SPEC", 0, "the mesh, as dp=8,mp=8, with weights as dp=[3,1], with ids as 4:3,2,1,0", 0},
    {"shape", 's', "N,N", 0, "extents of the tensor; an empty text for a scalar", 0},
    {"from", OPTION_FROM, "LAYOUT", 0,
     "how it lies: R,S(0), or per dim mp,- or [1,-1]; partial P(sum), masked mask{1,0}", 0},
    {"to", OPTION_TO, "LAYOUT", 0, "how it shall lie", 0},
    {"to-mesh", OPTION_TO_MESH, "SPEC", 0, "the mesh of --to [that of --mesh]", 0},
    {"dtype", 'd', "TYPE", 0, "f32, f64, bf16, f16, bool, i8, i16, i32, i64, u8, u16, u32 or u64 [f32]", 0},
    {"moves", OPTION_MOVES, NULL, 0, "print each move, in an order in which they could be done", 0},
    {"svg", OPTION_SVG, "FILE", 0,
     "draw into a file how many bytes go from which process to which; of at most 1024 processes", 0},
    {"all", OPTION_ALL, NULL, 0, "plan for every process, however many there are", 0},
    {0}};

static const char doc[] = "Plans the change of a tensor's layout, for every process of the meshes, each with a memory "
                          "of its own, and verifies the "
                          "plan.\v"
                          "--moves prints `move SRC DST [0:5,0:20] BYTES`, the box in global indices, and `sum SRC DST "
                          "[0:5] BYTES` where a partial "
                          "value is combined at DST. The last line is `bytes per process max B, lower bound L, ratio "
                          "R`: the most that any process "
                          "receives, the most that any lacks and so has to receive, and their ratio; where partial "
                          "values are combined, L and R are "
                          "`-`. Of more than 64 processes no plan is made unless --all is given: instead the bytes "
                          "that each process lacks are counted exactly, and the most is the lower bound L.";

typedef struct order {
    const char *mesh, *to_mesh, *shape, *from, *to, *svg;
    trama_dtype dtype;
    bool moves, all;
    struct {
        trama_mesh *from_mesh, *to_mesh; /* one and the same without --to-mesh */
        trama_shape shape;
        trama_layout from, to;
    } read;
} order;

static trama_dtype dtype_named(const struct argp_state *state, const char *text)
{
#define WORD(dtype, word, type) word,
    static const char *const words[] = {TRAMA_DTYPE_LIST(WORD)};
#undef WORD
    return (trama_dtype)argument_word(state, "--dtype", text, TRAMA_N_DTYPES, words);
}

/* ---- From words to a plan ---- */

static void read_order(struct argp_state *state, order *o)
{
    const char *const needed[][2] = {{o->mesh, "--mesh"}, {o->shape, "--shape"}, {o->from, "--from"}, {o->to, "--to"}};
    for (int i = 0; i < 4; i++)
        if (!needed[i][0])
            argp_error(state, "%s is missing", needed[i][1]);
    o->read.shape = argument_shape(state, "--shape", o->shape);
    o->read.from_mesh = o->read.to_mesh = argument_mesh(state, "--mesh", o->mesh, 0, NULL);
    if (o->to_mesh)
        o->read.to_mesh = argument_mesh(state, "--to-mesh", o->to_mesh, 0, NULL);
    o->read.from = argument_layout(state, "--from", o->from, o->read.from_mesh, o->read.shape.ndim);
    o->read.to = argument_layout(state, "--to", o->to, o->read.to_mesh, o->read.shape.ndim);
}

/* --moves and --svg need a plan for each process. */
static void check_size(struct argp_state *state, const order *o)
{
    const int size = trama_mesh_size(o->read.from_mesh), to_size = trama_mesh_size(o->read.to_mesh);
    const int larger = size > to_size ? size : to_size;
    if (o->svg && larger > MOST_DRAWN)
        argp_error(state, "--svg '%s': a mesh has %d processes, and a drawing shows at most %d", o->svg, larger,
                   MOST_DRAWN);
    if ((o->moves || o->svg) && larger > MOST_PLANNED && !o->all)
        argp_error(state, "%s: a mesh has %d processes, and more than %d are planned with --all only",
                   o->moves ? "--moves" : "--svg", larger, MOST_PLANNED);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    order *o = state->input;
    switch (key) {
    case 'm':
        o->mesh = text;
        return 0;
    case 's':
        o->shape = text;
        return 0;
    case 'd':
        o->dtype = dtype_named(state, text);
        return 0;
    case OPTION_FROM:
        o->from = text;
        return 0;
    case OPTION_TO:
        o->to = text;
        return 0;
    case OPTION_TO_MESH:
        o->to_mesh = text;
        return 0;
    case OPTION_MOVES:
        o->moves = true;
        return 0;
    case OPTION_SVG:
        o->svg = text;
        return 0;
    case OPTION_ALL:
        o->all = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': there are only options", text);
        return 0;
    case ARGP_KEY_SUCCESS:
        read_order(state, o);
        check_size(state, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Output ---- */

static void print_moves(const trama_reshard_plan *plan, int ndim)
{
    const trama_move *moves;
    int64_t n = trama_reshard_plan_moves(plan, &moves);
    for (int64_t i = 0; i < n; i++) {
        const trama_move *m = &moves[i];
        printf("%s %d %d [", m->sums ? "sum" : "move", m->source, m->target);
        for (int d = 0; d < ndim; d++)
            printf("%s%" PRId64 ":%" PRId64, d ? "," : "", m->offset[d], m->offset[d] + m->extent[d]);
        printf("] %" PRId64 "\n", m->bytes);
    }
}

static void print_certificate(const trama_reshard_plan *plan)
{
    trama_reshard_cost c = trama_reshard_plan_cost(plan);
    printf("%d processes; one sends at most %" PRId64
           " bytes, in at most %d messages sent and received; all together %" PRId64 " bytes\n",
           c.processes, c.sent, c.messages, c.total);
    printf("one allocates at most %" PRId64 " bytes beside its source, %" PRId64 " of them at most for messages\n",
           c.memory, c.buffers);
    printf("bytes per process max %" PRId64 ", lower bound ", c.received);
    if (c.bound < 0)
        printf("-, ratio -\n");
    else
        printf("%" PRId64 ", ratio %.3f\n", c.bound, c.bound ? (double)c.received / (double)c.bound : 1.0);
}

static void print_lack(const trama_reshard_lack *lack)
{
    printf("%d processes; no plan is made for so many: --all makes one for each\n", lack->processes);
    if (lack->lacking < 0) {
        printf("a layout is partial: only a plan tells the bytes that have to be received\n"
               "bytes per process max -, lower bound -, ratio -\n");
        return;
    }
    printf("%d processes lack something", lack->lacking);
    if (lack->lacking)
        printf(", process %d the most; all together %s%" PRId64 " bytes", lack->most_process,
               lack->total == INT64_MAX ? "more than " : "", lack->total - (lack->total == INT64_MAX));
    printf("\nbytes per process max -, lower bound %" PRId64 ", ratio -\n", lack->most);
}

static void print_layout(const char *word, const trama_mesh *mesh, const trama_layout *layout, trama_shape shape)
{
    char *summary;
    must(trama_layout_summary(mesh, layout, shape, &summary));
    printf("%s: %s", word, summary);
    trama_text_free(&summary);
}

static void summarize(const order *o)
{
    trama_reshard_lack lack;
    must(trama_reshard_lacking(o->read.from_mesh, &o->read.from, o->read.to_mesh, &o->read.to, o->dtype, o->read.shape,
                               &lack));
    print_layout("from", o->read.from_mesh, &o->read.from, o->read.shape);
    print_layout("to", o->read.to_mesh, &o->read.to, o->read.shape);
    print_lack(&lack);
}

static void tell(void *closure, int made, int processes)
{
    progress *p = closure;
    if (made == 1)
        *p = progress_begin(true, processes);
    progress_count(p, made, "processes planned");
}

static void plan_all(const order *o)
{
    progress p;
    trama_reshard_plan *plan = NULL;
    must(trama_reshard_plan_told(o->read.from_mesh, &o->read.from, o->read.to_mesh, &o->read.to, o->dtype,
                                 o->read.shape, tell, &p, &plan));
    if (o->moves)
        print_moves(plan, o->read.shape.ndim);
    if (o->svg)
        reshard_svg(o->svg, plan);
    print_certificate(plan);
    trama_reshard_plan_destroy(&plan);
}

int command_reshard(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .doc = doc};
    order o = {.dtype = TRAMA_F32};
    argp_parse(&parser, argc, argv, 0, NULL, &o);
    if (o.all || (trama_mesh_size(o.read.from_mesh) <= MOST_PLANNED && trama_mesh_size(o.read.to_mesh) <= MOST_PLANNED))
        plan_all(&o);
    else
        summarize(&o);
    if (o.read.to_mesh != o.read.from_mesh)
        trama_mesh_destroy(&o.read.to_mesh);
    trama_mesh_destroy(&o.read.from_mesh);
    return EXIT_SUCCESS;
}
