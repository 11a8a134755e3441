/* A program without a C library: it tells that it is there, and waits. */
	.globl _start
	.text
_start:
#if defined __x86_64__
	mov $1, %eax
	mov $1, %edi
	lea line(%rip), %rsi
	mov $6, %edx
	syscall
1:	mov $34, %eax
	syscall
	jmp 1b
#elif defined __i386__
	mov $4, %eax
	mov $1, %ebx
	mov $line, %ecx
	mov $6, %edx
	int $0x80
1:	mov $29, %eax
	int $0x80
	jmp 1b
#elif defined __aarch64__
	mov x8, #64
	mov x0, #1
	adr x1, line
	mov x2, #6
	svc #0
1:	mov x8, #73
	mov x0, #0
	mov x1, #0
	mov x2, #0
	mov x3, #0
	svc #0
	b 1b
#endif
	.section .rodata
line:	.ascii "ready\n"
	.section .note.GNU-stack,"",%progbits
