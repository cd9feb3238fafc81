import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.Header;
import io.debezium.engine.format.Json;
import io.debezium.engine.format.KeyValueHeaderChangeEventFormat;
import java.io.Reader;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Debezium's events of a database: Events PROPERTIES FILE COUNT.
 *
 * Each event is appended to FILE as its key, a tab, its value, a tab, its headers and a newline, all in JSON; "-" counts
 * the events and writes none.
 * The program ends after COUNT events; with 0 it runs until it is ended.
 */
public final class Events {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
            properties.load(reader);
        }
        Writer out = arguments[1].equals("-") ? Writer.nullWriter() : Files.newBufferedWriter(
                Path.of(arguments[1]), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        boolean isWritten = !arguments[1].equals("-");
        long count = Long.parseLong(arguments[2]);
        AtomicLong seen = new AtomicLong();
        CountDownLatch ended = new CountDownLatch(1);
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine
            .create(KeyValueHeaderChangeEventFormat.of(Json.class, Json.class, Json.class))
            .using(properties)
            .notifying((List<ChangeEvent<String, String>> events,
                        DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) -> {
                try {
                    for (ChangeEvent<String, String> event : events) {
                        if (isWritten) {
                            out.write(event.key() + "\t" + event.value() + "\t" + headers(event) + "\n");
                        }
                        committer.markProcessed(event);
                    }
                    out.flush();
                } catch (java.io.IOException error) {
                    throw new java.io.UncheckedIOException(error);
                }
                committer.markBatchFinished();
                if (seen.addAndGet(events.size()) >= count && count > 0) {
                    ended.countDown();
                }
            })
            .using((succeeded, message, error) -> {
                if (!succeeded) {
                    if (error != null) {
                        error.printStackTrace();
                    }
                    System.err.println(message);
                }
                ended.countDown();
            })
            .build();
        ExecutorService thread = Executors.newSingleThreadExecutor();
        thread.execute(engine);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(engine)));
        ended.await();
        System.exit(0);
    }

    private static String headers(ChangeEvent<String, String> event) {
        StringJoiner joiner = new StringJoiner(",", "{", "}");
        for (Header<String> header : event.<String>headers()) {
            joiner.add("\"" + header.getKey() + "\":" + header.getValue());
        }
        return joiner.toString();
    }

    private static void close(DebeziumEngine<?> engine) {
        try {
            engine.close();
        } catch (IllegalStateException error) {
            // The engine has ended by itself.
        } catch (java.io.IOException error) {
            System.err.println(error);
        }
    }
}
