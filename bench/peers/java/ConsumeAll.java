import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Takes the messages of a topic through the Parallel Consumer, and does nothing with them. */
public final class ConsumeAll {

    /** Arguments: bootstrap, topic, how many messages, order (KEY, ...), threads, group. */
    public static void main(String[] args) throws InterruptedException {
        long wanted = Long.parseLong(args[2]);
        var consumer = new KafkaConsumer<>(
                Map.<String, Object>of(
                        "bootstrap.servers", args[0],
                        "group.id", args[5],
                        "auto.offset.reset", "earliest",
                        "enable.auto.commit", false,
                        "max.poll.records", 5000),
                new ByteArrayDeserializer(),
                new ByteArrayDeserializer());
        var options = ParallelConsumerOptions.<byte[], byte[]>builder()
                .consumer(consumer)
                .ordering(ProcessingOrder.valueOf(args[3]))
                .maxConcurrency(Integer.parseInt(args[4]))
                .build();
        var taken = new AtomicLong();
        var all = new CountDownLatch(1);
        var parallel = ParallelStreamProcessor.createEosStreamProcessor(options);
        parallel.subscribe(List.of(args[1]));
        System.out.println("begin " + ProcessHandle.current().pid());
        parallel.poll(message -> {
            if (taken.incrementAndGet() == wanted) {
                all.countDown();
            }
        });
        while (!all.await(1, TimeUnit.SECONDS)) {
            if (parallel.isClosedOrFailed()) {
                throw new IllegalStateException("it stopped at message " + taken);
            }
        }
        System.out.println("end");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
