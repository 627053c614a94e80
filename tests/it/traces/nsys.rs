//! Exports of nsys as SQLite: read by builds with the feature, explained by the others.

use std::path::PathBuf;

/// The seed of the readers: one kernel on device 0.
fn seed() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds/kernels.nsys.sqlite")
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_build_without_sqlite_says_what_to_do() {
    let file = seed();
    let name = file.to_str().expect("UTF-8");
    for command in [&["trace", "show"][..], &["import"]] {
        let run = crate::cli::simulate(&[command, &[name]].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
        for part in ["it is a database of SQLite", "--format csv", "--features sqlite"] {
            assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
        }
    }
}

#[cfg(feature = "sqlite")]
mod with {
    use collsim::error::Result;
    use collsim::input::traces::{Trace, import, read_trace};
    use collsim::workload::Collective;
    use rusqlite::Connection;

    use super::super::{holds, refused, scenario, stated, steps};
    use super::seed;
    use crate::cli::simulate;

    /// Tables of kernels and texts, as nsys 2024 and later make them, with columns that nobody needs.
    const TABLES: &str = "
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
            deviceId INTEGER NOT NULL, streamId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
            shortName INTEGER NOT NULL, gridX INTEGER);
        INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)'),
            (2, 'gemm'), (3, 'ncclAllReduce'), (4, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL');";
    const RANGES: &str = "
        CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER, text TEXT,
            globalTid INTEGER, textId INTEGER, jsonText TEXT);";

    /// Numbers of two processes.
    const PROCESSES: [i64; 2] = [7 << 24, 9 << 24];

    /// A file of these tables, read.
    fn read(name: &str, sql: &str) -> Result<Trace> {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("collsim-{name}-{}.sqlite", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let base = Connection::open(&file).expect("a database");
        base.execute_batch(sql).expect("tables");
        base.close().expect("written");
        let trace = read_trace(file.to_str().expect("UTF-8"), None, &|_| ());
        std::fs::remove_file(&file).expect("ours");
        trace
    }

    fn kernel(start: i64, end: i64, device: i64, process: i64, name: i64) -> String {
        format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, {device}, 7, {process}, {name}, 4, 1);"
        )
    }

    fn range(start: i64, process: i64, payload: &str) -> String {
        format!(
            "INSERT INTO NVTX_EVENTS VALUES ({start}, {start} + 5, 59, NULL, {process} + 12, 3, {payload});"
        )
    }

    #[test]
    fn kernels_have_times_and_ranks() {
        let kernels = [
            kernel(30_000, 45_000, 0, PROCESSES[0], 1),
            kernel(1_000, 21_000, 0, PROCESSES[0], 1),
            kernel(2_000, 3_000, 0, PROCESSES[0], 2),
            kernel(4_000, 21_000, 1, PROCESSES[0], 1),
        ];
        let trace = read("kernels", &(TABLES.to_owned() + &kernels.concat())).expect("a trace");
        let calls: Vec<_> = trace
            .calls
            .iter()
            .map(|call| (call.rank, call.start_us, call.duration_us, call.bytes))
            .collect();
        assert_eq!(calls[0], (0, Some(30.0), Some(15.0), None));
        assert_eq!(calls[2], (1, Some(4.0), Some(17.0), None));
        assert_eq!(trace.calls[0].collective, Collective::AllReduce);
        assert_eq!(trace.left_out["kernels that are no collectives"], 1);
        let error = import(vec![trace], &stated()).expect_err("no sizes");
        assert!(error.to_string().contains("the size of none is known"), "{error}");
    }

    #[test]
    fn ranges_of_nccl_tell_sizes_where_each_kernel_has_one() {
        let payload = |bytes: u32| {
            format!("'{{\"NCCL\": {{\"Message size [bytes]\": {bytes}, \"Reduction\": \"Sum\"}}}}'")
        };
        let mut sql = TABLES.to_owned() + RANGES;
        for process in PROCESSES {
            // Kernels stand in another order than ranges.
            sql += &kernel(30_000, 45_000, 0, process, 1);
            sql += &kernel(1_000, 21_000, 0, process, 1);
            sql += &range(500, process, &payload(14_336));
            sql += &range(600, process, &payload(43_008));
        }
        let trace = read("ranges", &sql).expect("a trace");
        holds(&trace.warnings, "several processes number their GPUs alike");
        let (found, _) = scenario(vec![trace], &stated());
        assert_eq!(found.tensor_parallel, 2);
        assert_eq!(steps(&found), ["all_reduce-14336-bf16 x 1", "all_reduce-43008-bf16 x 1"]);
        // A call of a CUDA graph has no range: nobody knows which kernel is whose.
        sql += &kernel(60_000, 70_000, 0, PROCESSES[0], 1);
        let trace = read("graph", &sql).expect("a trace");
        let sizes: Vec<_> = trace.calls.iter().map(|call| (call.rank, call.bytes)).collect();
        assert_eq!(sizes.iter().filter(|call| **call == (0, None)).count(), 3);
        assert!(sizes.contains(&(1, Some(43_008))) && sizes.contains(&(1, Some(14_336))));
        let trace = read("plain", &sql.replace("NULL, 117440524", "NULL, 1")).expect("a trace");
        assert_eq!(trace.calls.len(), 5);
    }

    #[test]
    fn what_is_no_export_of_kernels_is_told() {
        refused(
            read("other", "CREATE TABLE x (y)"),
            &["no table CUPTI_ACTIVITY_KIND_KERNEL", "-t cuda"],
        );
        let graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER);";
        let trace = read("graphs", &format!("{TABLES}{graphs}")).expect("a trace");
        holds(&trace.warnings, "--cuda-graph-trace=node");
        let without = TABLES.replace("deviceId", "device");
        refused(read("columns", &without), &["SQLite cannot read it", "deviceId"]);
        // Cut off within a page.
        let mut bytes = std::fs::read(seed()).expect("the seed");
        bytes.truncate(700);
        let file = std::env::temp_dir().join(format!("collsim-cut-{}.sqlite", std::process::id()));
        std::fs::write(&file, &bytes).expect("written");
        let cut = read_trace(file.to_str().expect("UTF-8"), None, &|_| ());
        refused(cut, &["SQLite cannot read it", "is it whole"]);
        std::fs::remove_file(&file).expect("ours");
        let bytes = std::fs::read(seed()).expect("the seed");
        let piped = crate::cli::simulate_with(&["trace", "show", "-"], &bytes);
        assert!(piped.code == 2 && piped.err.contains("not a pipe"), "{}", piped.err);
    }

    /// SQLite holds no column to a type: a value of another one costs its row, not the file.
    #[test]
    fn rows_of_other_types_are_left_out_and_counted() {
        let tables = TABLES.replace(" TEXT NOT NULL", "").replace(" NOT NULL", "");
        let sound = tables + &kernel(1_000, 21_000, 0, PROCESSES[0], 1);
        let left_out = |sql: &str, what: &str| {
            let trace = read("types", &(sound.clone() + sql)).expect("a trace");
            assert_eq!((trace.calls.len(), trace.left_out.get(what)), (1, Some(&1)), "{sql}");
        };
        for value in ["NULL", "x'fffe'", "5"] {
            let sql = format!("INSERT INTO StringIds VALUES (9, {value});");
            left_out(&sql, "rows of StringIds without a number and a text");
        }
        for null in ["NULL, 5, 0", "5, NULL, 0", "5, 9, NULL"] {
            let process = PROCESSES[0];
            let sql = format!(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({null}, 7, {process}, 1, 4, 1);"
            );
            let what = "rows of CUPTI_ACTIVITY_KIND_KERNEL without start, end or GPU";
            left_out(&sql, what);
        }
        let bad = "INSERT INTO StringIds VALUES (9, CAST(x'ff41' AS TEXT));";
        assert_eq!(read("utf", &(sound.clone() + bad)).expect("a trace").calls.len(), 1);
        // Two GPUs without numbers are two, and a call that ends before it begins has no time.
        let odd = sound + &kernel(9, 5, -1, PROCESSES[0], 1) + &kernel(5, 9, -2, PROCESSES[0], 1);
        let trace = read("odd", &odd).expect("a trace");
        let ranks: std::collections::BTreeSet<u64> =
            trace.calls.iter().map(|call| call.rank).collect();
        assert_eq!((ranks.len(), trace.calls[1].duration_us), (3, None));
        holds(&trace.warnings, "numbers below 0");
        holds(&trace.warnings, "1 calls start or last as no call can");
    }

    #[test]
    fn the_program_shows_one() {
        let file = seed();
        let run = simulate(&["trace", "show", file.to_str().expect("UTF-8")]);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(
            run.out.contains("an nsys export as SQLite") && run.out.contains("20.0"),
            "{}",
            run.out
        );
    }
}
