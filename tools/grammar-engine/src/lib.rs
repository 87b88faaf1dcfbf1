//! llguidance behind plain C functions: one vocabulary per instance, grammars and matchers by number.
//!
//! JavaScript writes arguments into memory from `allocate`. A function that can fail returns a negative number and leaves
//! its message in `message_pointer`/`message_length`. A panic traps: the instance must then be dropped.
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory, TokenParser};

/// Counts the bytes in use: WebAssembly memory itself only grows.
struct Counting;
static IN_USE: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        IN_USE.fetch_add(size, Ordering::Relaxed);
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Engine {
    factory: ParserFactory,
    grammars: Vec<Option<TokenParser>>,
    matchers: Vec<Option<Matcher>>,
    message: String,
}

static mut ENGINE: Option<Engine> = None;

#[allow(static_mut_refs)]
fn engine() -> &'static mut Engine {
    // One thread per instance: nothing else can hold it.
    unsafe { ENGINE.as_mut().expect("create_engine was called") }
}

#[no_mangle]
pub extern "C" fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

#[no_mangle]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::leak(vec![0u8; length].into_boxed_slice()).as_mut_ptr()
}

/// # Safety
/// `pointer` comes from `allocate` with this length.
#[no_mangle]
pub unsafe extern "C" fn release(pointer: *mut u8, length: usize) {
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(pointer, length)) });
}

/// Creates the engine of this instance. `lengths` are the bytes of each token in `bytes`; special tokens have none.
///
/// # Safety
/// The pointers come from `allocate`, for `count` numbers and their sum of bytes.
#[no_mangle]
pub unsafe extern "C" fn create_engine(lengths: *const u32, count: usize, bytes: *const u8, end: u32, sliced: u32) {
    let lengths = unsafe { std::slice::from_raw_parts(lengths, count) };
    let mut words = Vec::with_capacity(count);
    let mut at = 0usize;
    for &length in lengths {
        words.push(unsafe { std::slice::from_raw_parts(bytes.add(at), length as usize) }.to_vec());
        at += length as usize;
    }
    let trie = TokTrie::from(&TokRxInfo::new(count as u32, end), &words);
    let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let slices = if sliced == 1 { SlicedBiasComputer::general_slices() } else { vec![] };
    let mut factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices).expect("slices");
    factory.quiet();
    unsafe {
        ENGINE = Some(Engine { factory, grammars: vec![], matchers: vec![], message: String::new() });
    }
}

/// Sets the limits of grammars that are compiled from now on.
#[no_mangle]
pub extern "C" fn set_limits(
    initial_fuel: u32,
    step_fuel: u32,
    lexer_states: u32,
    grammar_size: u32,
    step_items: u32,
    row_items: u32,
) {
    *engine().factory.limits_mut() = ParserLimits {
        initial_lexer_fuel: initial_fuel as u64,
        step_lexer_fuel: step_fuel as u64,
        max_lexer_states: lexer_states as usize,
        max_grammar_size: grammar_size as usize,
        step_max_items: step_items as usize,
        max_items_in_row: row_items as usize,
        precompute_large_lexemes: false,
        verbose_errors: false,
    };
}

#[no_mangle]
pub extern "C" fn message_pointer() -> *const u8 {
    engine().message.as_ptr()
}

#[no_mangle]
pub extern "C" fn message_length() -> usize {
    engine().message.len()
}

/// Returns the number of the grammar, or -1. `source` is Lark.
///
/// # Safety
/// `source` comes from `allocate` with this length.
#[no_mangle]
pub unsafe extern "C" fn compile(source: *const u8, length: usize) -> i32 {
    let source = String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(source, length) }).into_owned();
    let engine = engine();
    match engine.factory.create_parser(TopLevelGrammar::from_lark(source)) {
        Ok(mut parser) => {
            parser.start_without_prompt();
            put(&mut engine.grammars, parser)
        }
        Err(error) => fail(&format!("{error:#}")),
    }
}

#[no_mangle]
pub extern "C" fn drop_grammar(grammar: usize) {
    engine().grammars[grammar] = None;
}

/// Returns the number of a matcher at the beginning of a text.
#[no_mangle]
pub extern "C" fn open(grammar: usize) -> i32 {
    let engine = engine();
    let parser = engine.grammars[grammar].as_ref().expect("a grammar").deep_clone();
    put(&mut engine.matchers, Matcher::new(Ok(parser)))
}

#[no_mangle]
pub extern "C" fn close(matcher: usize) {
    engine().matchers[matcher] = None;
}

/// Returns 1 if the token was accepted, 0 if the grammar does not allow it, -1 for a failure.
#[no_mangle]
pub extern "C" fn accept(matcher: usize, token: u32) -> i32 {
    match engine().matchers[matcher].as_mut().expect("a matcher").try_consume_tokens(&[token]) {
        Ok(count) => count as i32,
        Err(error) => fail(&error.to_string()),
    }
}

/// Writes the allowed tokens, a bit each. Returns 1 if the text may end here, 0 if not, -1 for a failure.
///
/// # Safety
/// `words` comes from `allocate` with 4 bytes for each 32 tokens.
#[no_mangle]
pub unsafe extern "C" fn mask(matcher: usize, words: *mut u32, count: usize) -> i32 {
    let matcher = engine().matchers[matcher].as_mut().expect("a matcher");
    let out = unsafe { std::slice::from_raw_parts_mut(words, count) };
    match matcher.compute_mask_or_eos() {
        Ok(mask) => {
            let source = mask.as_slice();
            for (at, word) in out.iter_mut().enumerate() {
                *word = source.get(at).copied().unwrap_or(0);
            }
            if matcher.is_stopped() {
                return 1;
            }
            match matcher.is_accepting() {
                Ok(accepting) => accepting as i32,
                Err(error) => fail(&error.to_string()),
            }
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn put<T>(list: &mut Vec<Option<T>>, item: T) -> i32 {
    let at = list.iter().position(Option::is_none).unwrap_or(list.len());
    if at == list.len() {
        list.push(None);
    }
    list[at] = Some(item);
    at as i32
}

fn fail(message: &str) -> i32 {
    engine().message = message.chars().take(2000).collect();
    -1
}
