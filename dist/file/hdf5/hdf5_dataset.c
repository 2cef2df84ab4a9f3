/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets of users: contiguous, chunked, compressed or of another byte order, as HDF5 reads them. */
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "dataset_file.h"
#include "hdf5_types.h"

struct dataset_file {
    char *path, *name;
    hid_t file, dataset, memory; /* memory: the type of elements in memory */
    trama_shape shape;
};

static trama_status refuse(trama_status status, const char *path, const char *name, const char *reason)
{
    return trama_fail(NOWHERE, status, "%s: dataset %s: %s", path, name, reason);
}

/* ---- Types ---- */

static bool same_kind(hid_t type, hid_t memory)
{
    const H5T_class_t kind = H5Tget_class(type);
    if (kind != H5Tget_class(memory))
        return false;
    if (kind == H5T_FLOAT)
        return true;
    if (kind == H5T_INTEGER)
        return H5Tget_size(type) == H5Tget_size(memory) && H5Tget_sign(type) == H5Tget_sign(memory);
    if (kind == H5T_COMPOUND)
        return trama_dtype_kind_of(hdf5_dtype_of(type)) == TRAMA_KIND_COMPLEX;
    return H5Tequal(type, memory) > 0;
}

/* ---- Opening ---- */

static trama_status open_dataset(dataset_file *d, bool writes, trama_dtype dtype)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), type = -1;
    text why = {0};
    trama_status status = TRAMA_OK;
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    d->file = H5Fopen(d->path, writes ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (d->file < 0)
        return refuse(TRAMA_E_SYSTEM, d->path, d->name, "HDF5 cannot open the file; check its name, rights and format");
    d->dataset = H5Dopen2(d->file, d->name, H5P_DEFAULT);
    if (d->dataset < 0)
        return refuse(TRAMA_E_ARGUMENT, d->path, d->name, "there is none of this name; h5ls -r FILE lists them");
    d->memory = hdf5_type_of(dtype);
    type = H5Dget_type(d->dataset);
    if (type < 0 || !same_kind(type, d->memory)) {
        text_add(&why, "its elements are no %s; convert it, or use another element type", trama_dtype_name(dtype));
        status = refuse(TRAMA_E_DTYPE, d->path, d->name, why.at);
    } else if (!hdf5_shape_of(d->dataset, &d->shape)) {
        text_add(&why, "it has no extents, or more than %d dims", TRAMA_MAX_NDIM);
        status = refuse(TRAMA_E_SHAPE, d->path, d->name, why.at);
    }
    H5Tclose(type);
    free(why.at);
    return status;
}

trama_status dataset_open(const char *path, const char *name, bool writes, trama_dtype dtype, dataset_file **dataset)
{
    dataset_file *d = trama_alloc(sizeof *d);
    trama_status status = TRAMA_OK;
    *d = (dataset_file){trama_text_copy(path), trama_text_copy(name), -1, -1, -1, {.ndim = 0}};
    H5E_BEGIN_TRY
    {
        status = open_dataset(d, writes, dtype);
    }
    H5E_END_TRY
    if (status)
        dataset_close(&d);
    *dataset = d;
    return status;
}

void dataset_close(dataset_file **dataset)
{
    dataset_file *d = *dataset;
    if (!d)
        return;
    H5E_BEGIN_TRY
    {
        H5Tclose(d->memory);
        H5Dclose(d->dataset);
        H5Fclose(d->file);
    }
    H5E_END_TRY
    free(d->path);
    free(d->name);
    free(d);
    *dataset = NULL;
}

trama_shape dataset_shape(const dataset_file *d)
{
    return d->shape;
}

/* ---- Making ---- */

static bool make_dataset(hid_t file, const char *name, trama_dtype dtype, trama_shape shape)
{
    hsize_t extents[TRAMA_MAX_NDIM + 1];
    for (int i = 0; i < shape.ndim; i++)
        extents[i] = (hsize_t)shape.dim[i];
    hid_t type = hdf5_type_of(dtype), links = H5Pcreate(H5P_LINK_CREATE), made = -1;
    hid_t space = shape.ndim ? H5Screate_simple(shape.ndim, extents, NULL) : H5Screate(H5S_SCALAR);
    if (type >= 0 && space >= 0 && H5Pset_create_intermediate_group(links, 1) >= 0)
        made = H5Dcreate2(file, name, type, space, links, H5P_DEFAULT, H5P_DEFAULT);
    H5Pclose(links);
    H5Sclose(space);
    H5Tclose(type);
    return made >= 0 && H5Dclose(made) >= 0;
}

static bool make_all(const char *path, const char *name, trama_dtype dtype, trama_shape shape)
{
    const bool there = !access(path, F_OK);
    hid_t file =
        there ? H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT) : H5Fcreate(path, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return false;
    hid_t found = H5Dopen2(file, name, H5P_DEFAULT);
    bool good = found >= 0 ? H5Dclose(found) >= 0 : make_dataset(file, name, dtype, shape);
    return H5Fclose(file) >= 0 && good;
}

trama_status dataset_make(const char *path, const char *name, trama_dtype dtype, trama_shape shape)
{
    bool good = false;
    H5E_BEGIN_TRY
    {
        good = make_all(path, name, dtype, shape);
    }
    H5E_END_TRY
    return good ? TRAMA_OK
                : refuse(TRAMA_E_SYSTEM, path, name,
                         "HDF5 cannot make it; check that the file is of HDF5 or new, and may be written");
}

/* ---- Boxes ---- */

static herr_t transfer(const dataset_file *d, const box *b, void *to, const void *from)
{
    hsize_t offset[TRAMA_MAX_NDIM + 1], extent[TRAMA_MAX_NDIM + 1];
    herr_t result = -1;
    for (int i = 0; i < b->ndim; i++) {
        offset[i] = (hsize_t)b->lo[i];
        extent[i] = (hsize_t)b->n[i];
    }
    hid_t space = H5Dget_space(d->dataset);
    hid_t memory = b->ndim ? H5Screate_simple(b->ndim, extent, NULL) : H5Screate(H5S_SCALAR);
    if (space >= 0 && memory >= 0 &&
        (!b->ndim || H5Sselect_hyperslab(space, H5S_SELECT_SET, offset, NULL, extent, NULL) >= 0))
        result = to ? H5Dread(d->dataset, d->memory, memory, space, H5P_DEFAULT, to)
                    : H5Dwrite(d->dataset, d->memory, memory, space, H5P_DEFAULT, from);
    H5Sclose(memory);
    H5Sclose(space);
    return result;
}

static trama_status transfer_box(const dataset_file *d, const box *b, void *to, const void *from)
{
    herr_t result = 0;
    H5E_BEGIN_TRY
    {
        if (box_count(b))
            result = transfer(d, b, to, from);
    }
    H5E_END_TRY
    return result >= 0 ? TRAMA_OK
                       : refuse(TRAMA_E_SYSTEM, d->path, d->name,
                                to ? "HDF5 cannot read it; the file is damaged, or a filter is missing"
                                   : "HDF5 cannot write it; check that the disk has room");
}

trama_status dataset_read(const dataset_file *d, const box *b, void *data)
{
    return transfer_box(d, b, data, NULL);
}

trama_status dataset_write(const dataset_file *d, const box *b, const void *data)
{
    return transfer_box(d, b, NULL, data);
}
