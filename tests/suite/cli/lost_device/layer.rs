//! A Vulkan layer that loses devices, written against the layer interface of the Vulkan loader. `LOSE_AT` is a list of numbers: from that
//! number of its submissions on, every call of the first device that can report a loss does; the second number is for the second device.
//! After `wait:` only calls that wait report it, and not the submissions. Devices without a number are never lost. The test compiles it
//! separately, as a library of its own.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock};

type Call = unsafe extern "system" fn();
type Lookup = unsafe extern "system" fn(*mut c_void, *const c_char) -> Option<Call>;

const DEVICE_LOST: i32 = -4;
const LOADER_INSTANCE_CREATE_INFO: u32 = 47;
const LOADER_DEVICE_CREATE_INFO: u32 = 48;

/// One of the structures that the loader chains to those of an application.
#[repr(C)]
struct Chained {
    kind: u32,
    next: *mut Chained,
    /// 0 for a link.
    function: u32,
    link: *mut Link,
}

/// The next layer or driver.
#[repr(C)]
struct Link {
    next: *mut Link,
    instance: Lookup,
    device: Option<Lookup>,
}

#[repr(C)]
pub struct Negotiation {
    kind: u32,
    next: *mut c_void,
    version: u32,
    instance: Option<Lookup>,
    device: Option<Lookup>,
    physical: Option<Lookup>,
}

static INSTANCE: OnceLock<Lookup> = OnceLock::new();
static DEVICE: OnceLock<Lookup> = OnceLock::new();
static DEVICES: Mutex<Vec<Device>> = Mutex::new(Vec::new());

/// A device, with handles as numbers.
struct Device {
    handle: usize,
    queues: Vec<usize>,
    submitted: u64,
    lose_at: u64,
    in_waits: bool,
}

/// Adds so many submissions to the device of a device's or queue's handle, the newest one with it. Returns the device unless it is lost.
fn alive(handle: *mut c_void, submissions: u64) -> Option<*mut c_void> {
    let (handle, mut devices) = (handle as usize, DEVICES.lock().unwrap());
    let device = devices.iter_mut().rfind(|device| device.handle == handle || device.queues.contains(&handle)).unwrap();
    device.submitted += submissions;
    let spared = submissions > 0 && device.in_waits;
    (device.submitted < device.lose_at || spared).then_some(device.handle as *mut c_void)
}

/// Takes the next link off a chain and returns its functions.
unsafe fn link_of(info: *mut c_void, kind: u32) -> (Lookup, Option<Lookup>) {
    let mut at = unsafe { (*info.cast::<Chained>()).next };
    while unsafe { (*at).kind != kind || (*at).function != 0 } {
        at = unsafe { (*at).next };
    }
    let link = unsafe { (*at).link };
    unsafe { (*at).link = (*link).next };
    unsafe { ((*link).instance, (*link).device) }
}

unsafe extern "system" fn create_instance(info: *mut c_void, allocator: *mut c_void, instance: *mut *mut c_void) -> i32 {
    let (next, _) = unsafe { link_of(info, LOADER_INSTANCE_CREATE_INFO) };
    let _ = INSTANCE.set(next);
    let call = unsafe { next(null_mut(), c"vkCreateInstance".as_ptr()) }.unwrap();
    let call: unsafe extern "system" fn(*mut c_void, *mut c_void, *mut *mut c_void) -> i32 = unsafe { std::mem::transmute(call) };
    unsafe { call(info, allocator, instance) }
}

unsafe extern "system" fn create_device(physical: *mut c_void, info: *mut c_void, allocator: *mut c_void, device: *mut *mut c_void) -> i32 {
    let (next, of_device) = unsafe { link_of(info, LOADER_DEVICE_CREATE_INFO) };
    let _ = DEVICE.set(of_device.unwrap());
    let call = unsafe { next(null_mut(), c"vkCreateDevice".as_ptr()) }.unwrap();
    type Create = unsafe extern "system" fn(*mut c_void, *mut c_void, *mut c_void, *mut *mut c_void) -> i32;
    let call: Create = unsafe { std::mem::transmute(call) };
    let result = unsafe { call(physical, info, allocator, device) };
    if result == 0 {
        let mut devices = DEVICES.lock().unwrap();
        let all = std::env::var("LOSE_AT").unwrap();
        let own = all.split(',').nth(devices.len()).unwrap_or_default();
        let number = own.strip_prefix("wait:");
        let (in_waits, lose_at) = (number.is_some(), number.unwrap_or(own).parse().unwrap_or(u64::MAX));
        devices.push(Device { handle: unsafe { *device } as usize, queues: Vec::new(), submitted: 0, lose_at, in_waits });
    }
    result
}

unsafe extern "system" fn device_queue(device: *mut c_void, family: u32, index: u32, queue: *mut *mut c_void) {
    let call = unsafe { (DEVICE.get().unwrap())(device, c"vkGetDeviceQueue".as_ptr()) }.unwrap();
    let call: unsafe extern "system" fn(*mut c_void, u32, u32, *mut *mut c_void) = unsafe { std::mem::transmute(call) };
    unsafe { call(device, family, index, queue) };
    let mut devices = DEVICES.lock().unwrap();
    let of = devices.iter_mut().rfind(|of| of.handle == device as usize).unwrap();
    of.queues.push(unsafe { *queue } as usize);
}

macro_rules! losing {
    ($name:ident, $vulkan:literal, $count:expr, ($($arg:ident: $kind:ty),*)) => {
        unsafe extern "system" fn $name(handle: *mut c_void, $($arg: $kind),*) -> i32 {
            let Some(device) = alive(handle, $count) else { return DEVICE_LOST };
            let next = unsafe { (DEVICE.get().unwrap())(device, $vulkan.as_ptr()) }.unwrap();
            let next: unsafe extern "system" fn(*mut c_void, $($kind),*) -> i32 = unsafe { std::mem::transmute(next) };
            unsafe { next(handle, $($arg),*) }
        }
    };
}

losing!(submit, c"vkQueueSubmit", 1, (count: u32, submits: *const c_void, fence: u64));
losing!(wait_fences, c"vkWaitForFences", 0, (count: u32, fences: *const u64, all: u32, timeout: u64));
losing!(fence_status, c"vkGetFenceStatus", 0, (fence: u64));
losing!(wait_semaphores, c"vkWaitSemaphores", 0, (info: *const c_void, timeout: u64));
losing!(semaphore_value, c"vkGetSemaphoreCounterValue", 0, (semaphore: u64, value: *mut u64));
losing!(wait_idle, c"vkDeviceWaitIdle", 0, ());

unsafe extern "system" fn device_lookup(device: *mut c_void, name: *const c_char) -> Option<Call> {
    let own: *const () = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"vkGetDeviceProcAddr" => device_lookup as *const (),
        b"vkGetDeviceQueue" => device_queue as *const (),
        b"vkQueueSubmit" => submit as *const (),
        b"vkWaitForFences" => wait_fences as *const (),
        b"vkGetFenceStatus" => fence_status as *const (),
        b"vkWaitSemaphores" | b"vkWaitSemaphoresKHR" => wait_semaphores as *const (),
        b"vkGetSemaphoreCounterValue" | b"vkGetSemaphoreCounterValueKHR" => semaphore_value as *const (),
        b"vkDeviceWaitIdle" => wait_idle as *const (),
        _ => return unsafe { DEVICE.get()?(device, name) },
    };
    Some(unsafe { std::mem::transmute::<*const (), Call>(own) })
}

unsafe extern "system" fn instance_lookup(instance: *mut c_void, name: *const c_char) -> Option<Call> {
    let own: *const () = match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"vkGetInstanceProcAddr" => instance_lookup as *const (),
        b"vkGetDeviceProcAddr" => device_lookup as *const (),
        b"vkCreateInstance" => create_instance as *const (),
        b"vkCreateDevice" => create_device as *const (),
        _ => return unsafe { INSTANCE.get()?(instance, name) },
    };
    Some(unsafe { std::mem::transmute::<*const (), Call>(own) })
}

/// Entry point that the loader calls first.
#[unsafe(export_name = "vkNegotiateLoaderLayerInterfaceVersion")]
pub unsafe extern "system" fn negotiate(asked: *mut Negotiation) -> i32 {
    let asked = unsafe { &mut *asked };
    asked.version = 2;
    (asked.instance, asked.device, asked.physical) = (Some(instance_lookup as Lookup), Some(device_lookup as Lookup), None);
    0
}
