/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of convolutions and pools: how they lie on the spatial dims. */
#include "onnx_windows.h"

/* SAME_UPPER and SAME_LOWER: as many windows as strides, the odd element of padding at the end or at the beginning. */
static void pad_same(window_dim *d, bool lower)
{
    int64_t out = (d->in + d->stride - 1) / d->stride;
    int64_t total = max_i64((out - 1) * d->stride + (d->kernel - 1) * d->dilation + 1 - d->in, 0);
    d->before = lower ? total - total / 2 : total / 2;
    d->after = total - d->before;
}

static bool is_sound(const window_dim *d)
{
    enum { MOST = 1 << 26 };
    return d->in >= 0 && d->in <= MOST && d->kernel >= 1 && d->kernel <= MOST && d->stride >= 1 && d->stride <= MOST &&
           d->dilation >= 1 && d->dilation <= MOST && d->before >= 0 && d->before <= MOST && d->after >= 0 &&
           d->after <= MOST;
}

/* A list of one number a spatial dim, or of two; `otherwise` where it is not given. */
static bool spatial_list(onnx_node *n, const char *name, int count, int64_t otherwise, onnx_ints *list)
{
    *list = attribute_ints(n, name);
    for (; !list->given && list->n < count; list->n++)
        list->at[list->n] = otherwise;
    return list->n == count || node_fail(n, TRAMA_E_SHAPE, "'%s' has %d numbers instead of %d", name, list->n, count);
}

bool windows_of(onnx_node *n, trama_shape x, const int64_t *kernel, window_geometry *g)
{
    onnx_ints shape, strides, dilations, pads;
    *g = (window_geometry){.n = x.ndim - 2};
    if (g->n < 1 || g->n > WINDOW_DIMS)
        return node_fail(n, TRAMA_E_UNSUPPORTED, "operand 0 has %d dims instead of 3 to 5", x.ndim);
    if (!spatial_list(n, "kernel_shape", g->n, 1, &shape) || !spatial_list(n, "strides", g->n, 1, &strides) ||
        !spatial_list(n, "dilations", g->n, 1, &dilations) || !spatial_list(n, "pads", 2 * g->n, 0, &pads))
        return false;
    bool upper = attribute_is(n, "auto_pad", "NOTSET", "SAME_UPPER");
    bool lower = attribute_is(n, "auto_pad", "NOTSET", "SAME_LOWER");
    for (int i = 0; i < g->n; i++) {
        window_dim *d = &g->dim[i];
        *d = (window_dim){x.dim[i + 2],  kernel && !shape.given ? kernel[i] : shape.at[i],
                          strides.at[i], dilations.at[i],
                          pads.at[i],    pads.at[i + g->n]};
        if (!is_sound(d) || (kernel && d->kernel != kernel[i]))
            return node_fail(
                n, TRAMA_E_UNSUPPORTED,
                "dim %d: its extent is only known when fed, or extent, kernel, stride, dilation or pads are "
                "above 2^26 or wrong",
                i + 2);
        if (upper || lower)
            pad_same(d, lower);
    }
    return true;
}

trama_windows windows_as(const window_geometry *g)
{
    trama_windows w = {0};
    for (int i = 0; i < g->n; i++) {
        w.kernel[i] = g->dim[i].kernel;
        w.stride[i] = g->dim[i].stride;
        w.dilation[i] = g->dim[i].dilation;
        w.before[i] = g->dim[i].before;
        w.after[i] = g->dim[i].after;
    }
    return w;
}
