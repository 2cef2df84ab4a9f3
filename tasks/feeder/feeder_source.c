/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a column: where its rows lie. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "feeder.h"

/* ---- Files with headers ---- */

/* HDF5 files of others have no seal. */
static trama_status open_headed(trama_checkpoint *c)
{
    if (c->format != &hdf5_format)
        return c->format->open(c);
    trama_status status = checkpoint_open_file(c->path, O_RDONLY, &c->descriptor, &c->bytes);
    if (!status)
        status = hdf5_read_frame(c);
    if (status != TRAMA_E_SYSTEM || c->descriptor < 0)
        return status;
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                      "%s: HDF5 cannot read it, or it has datasets that are no contiguous tensors; rewrite it by "
                      "h5repack -l CONTI -f NONE, or give .raw for a file without a header",
                      c->path);
}

static trama_status find_tensor(const trama_checkpoint *c, const char *name, int *found)
{
    text names = {0};
    *found = name ? trama_checkpoint_find(c, name) : c->tensors.n == 1 ? 0 : -1;
    if (*found >= 0)
        return TRAMA_OK;
    for (int i = 0; i < c->tensors.n && i < 8; i++)
        text_add(&names, "%s %s", i ? "," : "", c->tensors.at[i].name);
    trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: %s%s; options.tensor takes one of its %d tensors:%s%s", c->path,
               name ? "it has no tensor " : "it has not one tensor", name ? name : "", c->tensors.n,
               names.at ? names.at : "", c->tensors.n > 8 ? ", ..." : "");
    free(names.at);
    return TRAMA_E_ARGUMENT;
}

static trama_status find_headed(const trama_feeder_column *o, feeder_source *s)
{
    int found;
    s->file = checkpoint_new(s->path);
    trama_status status = open_headed(s->file);
    if (!status)
        status = find_tensor(s->file, o->tensor, &found);
    if (status)
        return status;
    const stored_tensor *t = &s->file->tensors.at[found];
    s->descriptor = checkpoint_descriptor(s->file, t);
    s->at = t->at;
    s->dtype = t->dtype;
    s->shape = t->shape;
    return TRAMA_OK;
}

/* ---- Raw files ---- */

static trama_status find_raw(const trama_feeder_column *o, const trama_value *input, feeder_source *s)
{
    int64_t bytes = 0;
    trama_status status = trama_dtype_parse(o->raw, &s->dtype);
    if (!status)
        status = checkpoint_open_file(s->path, O_RDONLY, &s->descriptor, &bytes);
    if (status)
        return status;
    int64_t row = (int64_t)trama_dtype_size(s->dtype);
    s->at = o->offset;
    s->shape = input->shape;
    for (int d = 1; d < s->shape.ndim; d++)
        row *= s->shape.dim[d];
    if (row <= 0 || o->offset > bytes || (bytes - o->offset) % row)
        return trama_fail(NOWHERE, TRAMA_E_SHAPE,
                          "%s: %" PRId64 " bytes from byte %" PRId64 " on are no whole number of rows of %" PRId64
                          " bytes for the input %s; its dims but the first are known, and options.offset tells where "
                          "the rows begin",
                          s->path, bytes > o->offset ? bytes - o->offset : 0, o->offset, row, input->name);
    s->shape.dim[0] = (bytes - o->offset) / row;
    return TRAMA_OK;
}

/* ---- Both ---- */

static trama_status check_rows(const feeder_source *s, const trama_value *input)
{
    bool fits = s->shape.ndim == input->shape.ndim && s->shape.ndim > 0;
    for (int d = 1; fits && d < s->shape.ndim; d++)
        fits = input->shape.dim[d] == TRAMA_ANY || input->shape.dim[d] == s->shape.dim[d];
    if (!fits) {
        text t = {0};
        shape_text(&t, s->shape);
        text_add(&t, " for the input ");
        value_text(&t, input);
        trama_fail(NOWHERE, TRAMA_E_SHAPE, "%s: rows of %s; all dims but the first are equal", s->path, t.at);
        free(t.at);
        return TRAMA_E_SHAPE;
    }
    if (!elements_can_convert(s->dtype, input->dtype))
        return trama_fail(NOWHERE, TRAMA_E_DTYPE,
                          "%s: elements %s for the input %s, which has %s; give the input the "
                          "type of the file, and cast it by trama_cast",
                          s->path, trama_dtype_name(s->dtype), input->name, trama_dtype_name(input->dtype));
    if (!s->shape.dim[0])
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: it has no rows", s->path);
    return TRAMA_OK;
}

trama_status source_open(const char *path, const trama_feeder_column *o, const trama_value *input, feeder_source *s)
{
    *s = (feeder_source){.path = trama_text_copy(path), .descriptor = -1};
    trama_status status = o->raw ? find_raw(o, input, s) : find_headed(o, s);
    if (!status)
        status = check_rows(s, input);
    if (status)
        source_close(s);
    return status;
}

void source_close(feeder_source *s)
{
    if (!s->file && s->descriptor >= 0)
        close(s->descriptor);
    trama_checkpoint_destroy(&s->file);
    free(s->path);
    *s = (feeder_source){.descriptor = -1};
}
