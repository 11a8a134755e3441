#include "common/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Culet::MemoryFile.create(name, bytes): creates an anonymous file in memory that cannot be truncated and is closed on
 * exec. Returns its descriptor. Raises SystemCallError. */
static VALUE memory_file_create(VALUE self, VALUE name, VALUE bytes)
{
    off_t size = NUM2OFFT(bytes);
    int file = memfd_create(StringValueCStr(name), MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (file < 0)
        rb_sys_fail("memfd_create");
    if (ftruncate(file, size) != 0 || fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        close(file);
        rb_sys_fail("memfd_create");
    }
    return INT2NUM(file);
}

void culet_init_memory_file(VALUE culet)
{
    rb_define_singleton_method(rb_define_module_under(culet, "MemoryFile"), "create", memory_file_create, 2);
}
