/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of the holders of a tensor, about ten lines for a mesh of any size. It visits every process. */
#include <inttypes.h>

#include "layout_walk.h"

enum { MOST_SIZES = 8 };

typedef struct summary {
    int processes, nothing, empty; /* all processes; without a box by the mask; with an empty box */
    int n_sizes;
    struct size {
        box box; /* of the first process that has it */
        int processes;
    } sizes[MOST_SIZES];
    int other_sizes;        /* processes with boxes of further sizes */
    int64_t most, held;     /* elements: maximum of one process; sum over all, at most INT64_MAX */
    int n_most, first_most; /* number of processes with the maximum; the id of the first */
} summary;

static bool same_size(const box *a, const box *b)
{
    for (int d = 0; d < a->ndim; d++)
        if (a->n[d] != b->n[d])
            return false;
    return true;
}

static void count_size(summary *s, const box *b)
{
    for (int i = 0; i < s->n_sizes; i++)
        if (same_size(&s->sizes[i].box, b)) {
            s->sizes[i].processes++;
            return;
        }
    if (s->n_sizes == MOST_SIZES) {
        s->other_sizes++;
        return;
    }
    s->sizes[s->n_sizes++] = (struct size){*b, 1};
}

static void count_process(summary *s, const box *b, int id)
{
    const int64_t count = box_count(b);
    if (count == 0) {
        s->empty++;
        return;
    }
    count_size(s, b);
    s->held = count > INT64_MAX - s->held ? INT64_MAX : s->held + count;
    if (count > s->most) {
        s->most = count;
        s->n_most = 0;
        s->first_most = id;
    }
    s->n_most += count == s->most;
}

static summary count_all(const trama_mesh *mesh, const trama_layout *layout, const box *whole)
{
    summary s = {.processes = mesh->size};
    layout_walk w;
    layout_walk_begin(&w, mesh, layout, whole);
    for (int i = 0; i < mesh->size; i++) {
        layout_walk_to(&w, i);
        if (layout_present(layout, i))
            count_process(&s, &w.box, mesh->ids[i]);
        else
            s.nothing++;
    }
    layout_walk_end(&w);
    return s;
}

/* "1 process", "2 processes" */
static void count_text(text *t, int n)
{
    text_add(t, "%d process%s", n, n == 1 ? "" : "es");
}

/* Prints the number of boxes. Without a mask, processes that differ only along unsplit axes hold the same box. */
static void boxes_text(text *t, const summary *s, const trama_mesh *mesh, const trama_layout *layout)
{
    int holders = axes_size(mesh, layout_unsplit_axes(mesh, layout)), with = s->processes - s->nothing - s->empty;
    int terms = axes_size(mesh, layout_axes(layout, TRAMA_PARTIAL));
    count_text(t, s->processes);
    if (!layout->mask && with) {
        text_add(t, "; %d different box%s, %sheld by ", with / holders, with == holders ? "" : "es",
                 with == holders ? "" : "each ");
        count_text(t, holders);
        if (terms > 1)
            text_add(t, " as %d terms", terms);
    }
    text_add(t, "\n");
}

static void sizes_text(text *t, const summary *s)
{
    for (int i = 0; i < s->n_sizes; i++) {
        const box *b = &s->sizes[i].box;
        text_add(t, "  ");
        count_text(t, s->sizes[i].processes);
        text_add(t, " with a box of [");
        for (int d = 0; d < b->ndim; d++)
            text_add(t, "%s%" PRId64, d ? "," : "", b->n[d]);
        text_add(t, "]\n");
    }
    const struct {
        int processes;
        const char *words;
    } rest[] = {{s->other_sizes, "boxes of further sizes"},
                {s->empty, "an empty box"},
                {s->nothing, "nothing, which the mask takes away"}};
    for (int i = 0; i < 3; i++)
        if (rest[i].processes) {
            text_add(t, "  ");
            count_text(t, rest[i].processes);
            text_add(t, " with %s\n", rest[i].words);
        }
}

static void elements_text(text *t, const summary *s, const box *whole)
{
    text_add(t, "elements: %" PRId64 " of the tensor, ", box_count(whole));
    text_add(t, s->held == INT64_MAX ? "more than 2^63 - 2" : "%" PRId64, s->held);
    text_add(t, " held by all processes together");
    if (s->most) {
        text_add(t, "; at most %" PRId64 " by one, as by process %d and ", s->most, s->first_most);
        text_add(t, s->n_most == 1 ? "no other" : s->n_most == 2 ? "1 other" : "%d others", s->n_most - 1);
    }
    text_add(t, "\n");
}

trama_status trama_layout_summary(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, char **text_)
{
    trama_status status = layout_fits(mesh, layout, shape);
    if (!status && !text_)
        status = layout_is_null(TRAMA_E_ARGUMENT, mesh, "text's address");
    if (status)
        return status;
    text t = {0};
    box whole = box_whole(shape);
    summary s = count_all(mesh, layout, &whole);
    boxes_text(&t, &s, mesh, layout);
    sizes_text(&t, &s);
    elements_text(&t, &s, &whole);
    return text_give(&t, "trama_layout_summary", text_);
}
